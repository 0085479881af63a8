//! The same program once more, in a process of its own, which is talked to in lines.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

pub(crate) struct Companion {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Companion {
    /// Starts it with as many files as the system lets it have: a thousand sockets are more than is usual.
    pub(crate) fn start(arguments: &[String]) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", "ulimit -n \"$(ulimit -Hn)\"; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().expect("a path"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, input, output }
    }

    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("it listens");
    }

    /// Closes its input and waits for its end.
    pub(crate) fn end(mut self) {
        drop(self.input);
        self.child.wait().expect("it ends");
    }
}

/// A number behind a flag.
pub(crate) fn number(flag: &str, default: usize) -> usize {
    let mut arguments = std::env::args().skip_while(|argument| argument != flag).skip(1);
    arguments.next().map_or(default, |value| value.parse().expect("a number"))
}

pub(crate) fn is_set(flag: &str) -> bool {
    std::env::args().any(|argument| argument == flag)
}
