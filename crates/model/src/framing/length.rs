//! Messages that follow their length.

use super::{FrameError, Scan};

const HEADER: usize = 4;

/// Reads the length of each frame, then counts its bytes.
#[derive(Default)]
pub(super) struct LengthScanner {
    header: [u8; HEADER],
    /// How many bytes of the header came; all of them while the frame is read.
    have: usize,
    /// How many bytes the frame still needs.
    remaining: usize,
}

impl LengthScanner {
    pub(super) fn scan(&mut self, piece: &[u8], offset: u64, limit: usize) -> Result<Scan, FrameError> {
        let mut skip = 0;
        if self.have < HEADER {
            skip = piece.len().min(HEADER - self.have);
            self.header[self.have..self.have + skip].copy_from_slice(&piece[..skip]);
            self.have += skip;
            if self.have < HEADER {
                return Ok(Scan { skip, take: 0, end: false });
            }
            let length = u32::from_be_bytes(self.header);
            self.remaining = usize::try_from(length).unwrap_or(usize::MAX);
            if self.remaining > limit {
                let offset = offset + skip as u64 - HEADER as u64;
                return Err(FrameError::TooLarge { offset, limit, announced: Some(length) });
            }
        }
        let take = self.remaining.min(piece.len() - skip);
        self.remaining -= take;
        let end = self.remaining == 0;
        if end {
            self.have = 0;
        }
        Ok(Scan { skip, take, end })
    }

    /// How many bytes of the header of an unfinished frame came.
    pub(super) fn prefix(&self) -> usize {
        self.have
    }
}
