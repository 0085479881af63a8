//! Where text goes: a thread that writes it to stdout and stderr, in order.
//!
//! A reader may stop reading, as a pager does. Then that thread waits, and the rest of the program does not:
//! it can be interrupted, and the informer goes on.

use std::{
    fmt,
    io::{self, BufWriter, Write},
    thread,
    time::Duration,
};

use tokio::sync::{mpsc, oneshot};

/// So many pieces of text wait for the writer.
const WAITING: usize = 256;
/// How long the end waits for a reader who is slow.
const ENDING: Duration = Duration::from_secs(1);

enum Piece {
    Out(String),
    Err(String),
}

/// The way to the writer.
pub(super) struct Sink {
    pieces: mpsc::Sender<Piece>,
    ended: oneshot::Receiver<io::Result<()>>,
}

/// Nobody reads what is written, or it cannot be written: [`Sink::close`] knows.
#[derive(Debug)]
pub(super) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the output is closed")
    }
}

impl std::error::Error for Closed {}

impl Sink {
    /// Begins to write.
    pub(super) fn open() -> io::Result<Self> {
        let (pieces, receiver) = mpsc::channel(WAITING);
        let (done, ended) = oneshot::channel();
        let work = move || {
            // Whoever waits for the end has gone if this fails.
            let _ = done.send(write(receiver, io::stdout().lock(), io::stderr()));
        };
        thread::Builder::new().name("writer".to_owned()).spawn(work)?;
        Ok(Self { pieces, ended })
    }

    /// Writes to stdout.
    pub(super) async fn out(&self, text: String) -> Result<(), Closed> {
        self.pieces.send(Piece::Out(text)).await.map_err(|_| Closed)
    }

    /// Writes a line to stderr, after everything before it.
    pub(super) async fn err(&self, line: String) -> Result<(), Closed> {
        self.pieces.send(Piece::Err(line)).await.map_err(|_| Closed)
    }

    /// Waits until nothing more can be written.
    pub(super) async fn closed(&self) {
        self.pieces.closed().await;
    }

    /// Waits until all is written, but not for ever. A reader who has gone is no error.
    pub(super) async fn close(self) -> io::Result<()> {
        drop(self.pieces);
        match tokio::time::timeout(ENDING, self.ended).await {
            Ok(Ok(Err(error))) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }
}

/// Writes what comes, and flushes when nothing more is there.
fn write(mut pieces: mpsc::Receiver<Piece>, out: impl Write, mut err: impl Write) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 * 1024, out);
    while let Some(first) = pieces.blocking_recv() {
        let mut next = Some(first);
        while let Some(piece) = next {
            match piece {
                Piece::Out(text) => out.write_all(text.as_bytes())?,
                Piece::Err(line) => {
                    out.flush()?;
                    // Without a stderr the events are still worth telling.
                    let _ = writeln!(err, "{line}");
                }
            }
            next = pieces.try_recv().ok();
        }
        out.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Both(Arc<Mutex<Vec<u8>>>);

    impl Write for Both {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_goes_to_stderr_comes_after_what_went_to_stdout_before_it() {
        let (sender, receiver) = mpsc::channel(9);
        for piece in [Piece::Out("a\n".into()), Piece::Err("b".into()), Piece::Out("c\n".into())] {
            sender.try_send(piece).ok().unwrap();
        }
        drop(sender);
        let both = Both::default();
        write(receiver, both.clone(), both.clone()).unwrap();
        assert_eq!(*both.0.lock().unwrap(), b"a\nb\nc\n");
    }

    #[test]
    fn a_reader_who_has_gone_ends_the_writer() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (sender, receiver) = mpsc::channel(9);
        sender.try_send(Piece::Out("a".into())).ok().unwrap();
        assert_eq!(write(receiver, Gone, io::sink()).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(sender.is_closed(), "whoever sends learns of it");
    }
}
