//! Programs that are measured: started, spoken to line by line, and gone at the end.
//!
//! Each ends with its input, so that nothing is left running whatever becomes of this one. What a program writes to
//! stderr is kept and shown if it fails.

use std::{
    collections::VecDeque,
    ffi::OsStr,
    path::Path,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    task::JoinHandle,
    time::timeout,
};

/// How long a line may take.
const LINE_WITHIN: Duration = Duration::from_secs(600);
/// How long a program may take to end after its input has.
const END_WITHIN: Duration = Duration::from_secs(20);
/// So many of its last lines on stderr are kept.
const LAST_LINES: usize = 20;

/// A program that runs, until this is dropped.
pub(crate) struct Process {
    name: String,
    child: Child,
    /// The process that does the work: the child, or one that the child looks after.
    pid: u32,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    errors: Option<JoinHandle<VecDeque<String>>>,
}

impl Process {
    /// Starts a program that ends with its input.
    pub(crate) fn start<A: AsRef<OsStr>>(program: &Path, args: impl IntoIterator<Item = A>) -> Result<Self> {
        Self::start_with(program, args, &[])
    }

    /// The same with variables of its own.
    pub(crate) fn start_with<A: AsRef<OsStr>>(
        program: &Path,
        args: impl IntoIterator<Item = A>,
        variables: &[(&str, &str)],
    ) -> Result<Self> {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.args(args).envs(variables.iter().copied());
        Self::spawn(name, command)
    }

    /// Starts a program that does not: a shell looks after it, and ends it when the shell's input ends.
    pub(crate) async fn start_guarded<A: AsRef<OsStr>>(
        program: &Path,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Self> {
        // Ctrl-C is not for the shell: the end of its input comes soon after.
        const GUARD: &str = r#"trap '' INT; "$@" & echo $!; cat; kill $!; wait"#;
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "sh"]).arg(program).args(args);
        let mut process = Self::spawn(name, command)?;
        let pid = process.line().await?;
        process.pid = pid.parse().with_context(|| format!("a process id, not {pid:?}"))?;
        Ok(process)
    }

    fn spawn(name: String, mut command: Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let (Some(pid), Some(input), Some(output), Some(errors)) =
            (child.id(), child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            bail!("{name} ended at once");
        };
        let errors = tokio::spawn(async move {
            let (mut lines, mut last) = (BufReader::new(errors).lines(), VecDeque::new());
            while let Ok(Some(line)) = lines.next_line().await {
                last.push_back(line);
                if last.len() > LAST_LINES {
                    last.pop_front();
                }
            }
            last
        });
        let lines = BufReader::new(output).lines();
        Ok(Self { name, child, pid, input: Some(input), lines, errors: Some(errors) })
    }

    /// What the process has used.
    pub(crate) fn usage(&self) -> Usage {
        Usage::of(self.pid)
    }

    /// The next line of its output.
    pub(crate) async fn line(&mut self) -> Result<String> {
        match timeout(LINE_WITHIN, self.lines.next_line()).await {
            Ok(Ok(Some(line))) => Ok(line),
            Ok(_) => {
                let status = timeout(END_WITHIN, self.child.wait()).await;
                let status = match status {
                    Ok(Ok(status)) => status.to_string(),
                    _ => "still running".to_owned(),
                };
                bail!("{} says no more ({status}){}", self.name.clone(), self.last_words().await)
            }
            Err(_) => {
                let seconds = LINE_WITHIN.as_secs();
                bail!("{} has said nothing for {seconds} s{}", self.name.clone(), self.last_words().await)
            }
        }
    }

    /// The number of a line such as `synced 30000`.
    pub(crate) async fn count(&mut self, word: &str) -> Result<u64> {
        let line = self.line().await?;
        let number = line.strip_prefix(word).and_then(|rest| rest.trim().parse().ok());
        number.with_context(|| format!("{} says {line:?} instead of {word:?} and a number", self.name))
    }

    /// A line that is exactly this.
    pub(crate) async fn word(&mut self, word: &str) -> Result<()> {
        let line = self.line().await?;
        if line != word {
            bail!("{} says {line:?} instead of {word:?}", self.name);
        }
        Ok(())
    }

    /// Sends a line and returns the answer.
    pub(crate) async fn ask(&mut self, line: &str) -> Result<String> {
        let input = self.input.as_mut().with_context(|| format!("{} is ending", self.name))?;
        input.write_all(format!("{line}\n").as_bytes()).await?;
        input.flush().await?;
        self.line().await
    }

    /// Ends its input, and waits until it has gone.
    pub(crate) async fn end(mut self) -> Result<()> {
        drop(self.input.take());
        match timeout(END_WITHIN, self.child.wait()).await {
            Ok(status) if status.as_ref().is_ok_and(std::process::ExitStatus::success) => Ok(()),
            Ok(status) => bail!("{}: {}{}", self.name.clone(), status?, self.last_words().await),
            Err(_) => bail!("{} does not end{}", self.name.clone(), self.last_words().await),
        }
    }

    /// Ends it, and returns the end of what it wrote to stderr.
    async fn last_words(&mut self) -> String {
        // It may have gone already.
        let _ = self.child.start_kill();
        let Some(errors) = self.errors.take() else { return String::new() };
        let lines = timeout(Duration::from_secs(1), errors).await;
        lines.into_iter().flatten().flatten().map(|line| format!("\n    {line}")).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.input.take());
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < END_WITHIN {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What a process has used, as the kernel counts it.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    pid: u32,
}

impl Usage {
    pub(crate) fn of(pid: u32) -> Self {
        Self { pid }
    }

    /// CPU time of all its threads.
    pub(crate) fn cpu(self) -> Result<Duration> {
        // One counts in hundredths of a second, the other in nanoseconds but without threads that have ended.
        Ok(self.cpu_of_process()?.max(self.cpu_of_threads()))
    }

    fn cpu_of_process(self) -> Result<Duration> {
        let stat = self.read("stat")?;
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let ticks: Vec<u64> =
            after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse().ok()).collect();
        match ticks[..] {
            [user, system] => Ok(Duration::from_millis((user + system) * 10)),
            _ => bail!("/proc/{}/stat has no CPU time", self.pid),
        }
    }

    fn cpu_of_threads(self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten().flatten();
        let nanoseconds = threads.filter_map(|thread| {
            let times = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            times.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanoseconds.sum())
    }

    /// Resident memory in MB.
    pub(crate) fn resident(self) -> Result<f64> {
        self.memory("VmRSS")
    }

    /// The most that was ever resident, in MB.
    pub(crate) fn peak(self) -> Result<f64> {
        self.memory("VmHWM")
    }

    fn memory(self, name: &str) -> Result<f64> {
        let status = self.read("status")?;
        let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kilobytes: Option<f64> = value.and_then(|value| value.split_whitespace().next()?.parse().ok());
        kilobytes
            .map(|kilobytes| kilobytes / 1024.0)
            .with_context(|| format!("/proc/{}/status has no {name}", self.pid))
    }

    fn read(self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.pid);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Process {
        Process::start(Path::new("sh"), ["-c", script]).unwrap()
    }

    fn is_there(pid: u32) -> bool {
        // One that has ended and was not waited for yet has no memory.
        Usage::of(pid).resident().is_ok()
    }

    #[tokio::test]
    async fn a_process_is_spoken_to_measured_and_ended() {
        // The shell itself waits at the end: it neither grows nor becomes another program while it is measured.
        let mut process = shell("echo synced 7; read line; echo got $line; read end; true");
        assert_eq!(process.count("synced").await.unwrap(), 7);
        assert_eq!(process.ask("this").await.unwrap(), "got this");
        let usage = process.usage();
        let (resident, peak) = (usage.resident().unwrap(), usage.peak().unwrap());
        assert!(resident > 0.0 && peak >= resident, "{resident} {peak}");
        let cpu = usage.cpu().unwrap();
        assert!(cpu > Duration::ZERO && cpu < Duration::from_secs(1), "{cpu:?}");
        process.end().await.unwrap();
        assert!(usage.cpu().is_err());
    }

    #[tokio::test]
    async fn what_a_failing_process_says_is_in_the_error() {
        let mut process = shell("echo it is broken >&2; exit 3");
        let error = process.line().await.unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.contains("it is broken"), "{error}");
        assert!(shell("cat; exit 4").end().await.unwrap_err().to_string().contains("exit status: 4"));
        assert!(shell("echo what").count("synced").await.is_err());
    }

    #[tokio::test]
    async fn nothing_is_left_when_a_process_is_dropped_however_it_runs() {
        let process = shell("cat");
        let pid = process.pid;
        drop(process);
        assert!(!is_there(pid));
        let guarded = Process::start_guarded(Path::new("sleep"), ["100"]).await.unwrap();
        let pid = guarded.pid;
        assert!(is_there(pid));
        drop(guarded);
        assert!(!is_there(pid));
    }
}
