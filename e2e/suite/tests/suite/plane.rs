//! The real control plane: one for the whole process, started when it is first needed.
//!
//! It reads commands from its input, which this process holds open: when this process ends, however it ends, the control
//! plane ends too and takes its directory with it.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{self, Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Condvar, LazyLock, Mutex, PoisonError},
};

static PLANE: LazyLock<Option<Plane>> = LazyLock::new(Plane::start);

/// Etcd and a kube-apiserver on loopback.
pub(crate) struct Plane {
    directory: PathBuf,
    talk: Mutex<Talk>,
    playing: Mutex<Playing>,
    turn_ended: Condvar,
}

/// Who plays: many at once, or one who disturbs the others alone.
#[derive(Default)]
struct Playing {
    together: usize,
    alone: bool,
}

struct Talk {
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    _process: Child,
}

/// The right to play on the real server, until it is dropped.
pub(crate) struct Turn {
    plane: &'static Plane,
    alone: bool,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut playing = self.plane.playing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.alone {
            playing.alone = false;
        } else {
            playing.together -= 1;
        }
        self.plane.turn_ended.notify_all();
    }
}

impl Plane {
    /// The control plane, where there is one to be had.
    pub(crate) fn get() -> Option<&'static Self> {
        PLANE.as_ref()
    }

    fn start() -> Option<Self> {
        let program = env::var_os("INFORMER_CONTROL_PLANE")?;
        let directory = env::temp_dir().join(format!("informer-e2e-{}", process::id()));
        let mut process = Command::new(&program)
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{} cannot be started: {e}", Path::new(&program).display()));
        let commands = process.stdin.take().expect("a pipe");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut talk = Talk { commands, answers, _process: process };
        while talk.line() != "ready" {}
        Some(Self {
            directory,
            talk: Mutex::new(talk),
            playing: Mutex::default(),
            turn_ended: Condvar::new(),
        })
    }

    /// Waits for a turn. Who plays alone lets all others go first: they would have to wait for it one after another.
    pub(crate) fn turn(&'static self, alone: bool) -> Turn {
        let playing = self.playing.lock().unwrap_or_else(PoisonError::into_inner);
        let must_wait = |playing: &mut Playing| playing.alone || (alone && playing.together > 0);
        let mut playing =
            self.turn_ended.wait_while(playing, must_wait).unwrap_or_else(PoisonError::into_inner);
        if alone {
            playing.alone = true;
        } else {
            playing.together += 1;
        }
        Turn { plane: self, alone }
    }

    /// Where its files are.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Has a command carried out.
    pub(crate) fn obey(&self, command: &str) {
        let mut talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(talk.commands, "{command}").expect("the control plane listens");
        let answer = talk.line();
        assert!(answer.starts_with("ok"), "{command}: {answer}");
    }
}

impl Talk {
    fn line(&mut self) -> String {
        let mut line = String::new();
        let length = self.answers.read_line(&mut line).expect("text");
        assert!(length > 0, "the control plane has ended, see what it said above");
        line.trim_end().to_owned()
    }
}
