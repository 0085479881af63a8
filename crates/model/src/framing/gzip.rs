//! A gzip stream of many members, decompressed step by step.

use flate2::{Decompress, FlushDecompress, Status};

use super::{FrameError, Input};

/// The first byte of every member.
const MAGIC: u8 = 0x1f;
/// The most that one step decompresses. However well a stream is packed, no more than this is held.
const STEP: usize = 16 << 10;
/// The largest window that deflate has, as a power of two.
const WINDOW_BITS: u8 = 15;

/// Decompresses what the scanner asks for, and no more.
pub(super) struct Gunzip {
    /// The member that is read. Between two members there is none, and so a stream that waits for its next
    /// event holds no window.
    member: Option<Decompress>,
    step: Box<[u8]>,
    /// Which bytes of `step` are still to be taken.
    start: usize,
    end: usize,
    /// Where the member begins in the compressed stream, or the next one will.
    offset: u64,
}

impl Gunzip {
    pub(super) fn new() -> Self {
        Self { member: None, step: vec![0; STEP].into(), start: 0, end: 0, offset: 0 }
    }

    /// The decompressed bytes that are still to be taken.
    pub(super) fn plain(&self) -> &[u8] {
        &self.step[self.start..self.end]
    }

    /// Leaves out the first of them.
    pub(super) fn advance(&mut self, count: usize) {
        self.start += count;
    }

    /// [`plain`](Self::plain), after one more step when it was empty. Empty again: more input is needed.
    pub(super) fn fill(&mut self, input: &mut Input) -> Result<&[u8], FrameError> {
        while self.start == self.end {
            let compressed = input.front();
            let member = match (&mut self.member, compressed.first()) {
                // Even without input: the last step may have been too small for what the member had.
                (Some(member), _) => member,
                (None, None) => break,
                (none, Some(&MAGIC)) => none.insert(Decompress::new_gzip(WINDOW_BITS)),
                (None, Some(other)) => {
                    let problem = format!(
                        "expected `\\x1f`, with which a member begins, found `{}`",
                        other.escape_ascii()
                    );
                    return Err(FrameError::Gzip { offset: self.offset, problem });
                }
            };
            let (read, written) = (member.total_in(), member.total_out());
            let outcome = member.decompress(compressed, &mut self.step, FlushDecompress::None);
            let (read, written) = (member.total_in() - read, member.total_out() - written);
            let offset = self.offset + member.total_in();
            input.advance(read as usize);
            (self.start, self.end) = (0, written as usize);
            match outcome {
                Ok(Status::StreamEnd) => (self.member, self.offset) = (None, offset),
                Ok(_) if read == 0 && written == 0 => break,
                // What came before the damage is taken first; the next step fails again.
                Err(error) if written == 0 => {
                    let problem = error.message().unwrap_or("damaged member").to_owned();
                    return Err(FrameError::Gzip { offset, problem });
                }
                _ => {}
            }
        }
        Ok(self.plain())
    }

    /// The error that it is when the stream ends here.
    pub(super) fn cut_member(&self) -> Option<FrameError> {
        let pending = self.member.as_ref()?.total_in();
        Some(FrameError::TruncatedGzip { offset: self.offset, pending })
    }
}
