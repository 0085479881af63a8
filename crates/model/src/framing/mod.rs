//! Messages out of the bytes of a watch stream, and objects out of those of a list.
//!
//! In go the chunks of a response body, cut anywhere and perhaps compressed; out come the complete messages,
//! one by one. What a message means is not looked at here.
//!
//! Memory: a decoder has one buffer, which it uses again for every frame that came in pieces; a frame that came in one
//! is read where it lies. So reading a frame costs no allocation, and who keeps one copies it.

mod error;
mod gzip;
mod json;
mod length;
mod list;
mod protobuf_list;

use std::{collections::VecDeque, fmt, mem, ops::Range};

use bytes::{Buf, Bytes};

pub use error::FrameError;
use gzip::Gunzip;
use json::JsonScanner;
use length::LengthScanner;
use list::ListScanner;
use protobuf_list::ProtobufListScanner;

/// The largest message a [`FrameDecoder`] takes unless it is told otherwise: 16 MiB.
pub const DEFAULT_FRAME_LIMIT: usize = 16 << 20;

/// How much is kept of a message that is skipped for its size.
const BEGINNING: usize = 64 << 10;
/// The longest buffer that is kept for the next message.
const KEPT_BUFFER: usize = 64 << 10;

/// How the messages of a stream follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// JSON values one after another, with any whitespace or none between them.
    Json,
    /// Each message after its length, which is four bytes, the highest first.
    LengthDelimited,
    /// One JSON object, a list: each element of its array `items` is a message, and the last message is the
    /// object with that array empty, its *envelope*.
    JsonList,
    /// One list in protobuf, as `application/vnd.kubernetes.protobuf` has it: each item is a message, and the last
    /// message, when the stream has [ended](FrameDecoder::finish), is the list without items, its *envelope*.
    ProtobufList,
}

/// Cuts a watch stream, or a list, into its messages.
///
/// Bytes go in as they arrive; a message comes out as soon as its last byte is there. No byte is looked at
/// twice, however small the chunks are. Of JSON only the boundaries are checked, not what lies between them.
///
/// When [`next_frame`](Self::next_frame) is called until it answers `None` before the next
/// [`push`](Self::push), the decoder holds at most the limit and one chunk, and with gzip one step of 16 KiB.
/// The frame that it answers is an allocation of its own: keeping it keeps nothing else alive.
/// [`advance`](Self::advance) and [`frame`](Self::frame) show the same frames where they lie, without a copy.
///
/// A decoder that failed stays failed: every later call answers the same error.
///
/// ```
/// use informer_model::{FrameDecoder, Framing};
///
/// let mut decoder = FrameDecoder::new(Framing::Json);
/// decoder.push(r#"{"type":"ADDED"}{"type":"#);
/// assert_eq!(decoder.next_frame()?.unwrap(), r#"{"type":"ADDED"}"#);
/// assert_eq!(decoder.next_frame()?, None);
///
/// decoder.push("\"DELETED\"}\n");
/// assert_eq!(decoder.next_frame()?.unwrap(), r#"{"type":"DELETED"}"#);
/// assert_eq!(decoder.finish()?, None);
///
/// let mut decoder = FrameDecoder::new(Framing::JsonList);
/// decoder.push(r#"{"kind":"PodList","items":[{"a":1},{"a":2}],"metadata":{}}"#);
/// assert_eq!(decoder.next_frame()?.unwrap(), r#"{"a":1}"#);
/// assert_eq!(decoder.next_frame()?.unwrap(), r#"{"a":2}"#);
/// assert_eq!(decoder.next_frame()?.unwrap(), r#"{"kind":"PodList","items":[],"metadata":{}}"#);
/// assert!(decoder.is_envelope());
/// # Ok::<(), informer_model::FrameError>(())
/// ```
pub struct FrameDecoder {
    scanner: Scanner,
    limit: usize,
    skipping: bool,
    gzip: Option<Gunzip>,
    input: Input,
    /// What earlier chunks brought of the frame that is not complete; and a complete one that came in pieces, until the
    /// next is asked for.
    partial: Vec<u8>,
    found: Found,
    /// How many bytes of that frame came and are not held, because it will be skipped.
    dropped: usize,
    /// Why it will be skipped.
    unfit: Option<FrameError>,
    /// Whether the last frame was the envelope of a list.
    envelope: bool,
    /// How many bytes of the stream were read, after decompression.
    offset: u64,
    failure: Option<FrameError>,
}

impl FrameDecoder {
    /// A decoder for uncompressed messages of up to [`DEFAULT_FRAME_LIMIT`] bytes.
    pub fn new(framing: Framing) -> Self {
        let scanner = match framing {
            Framing::Json => Scanner::Json(JsonScanner::default()),
            Framing::LengthDelimited => Scanner::Length(LengthScanner::default()),
            Framing::JsonList => Scanner::List(ListScanner::default()),
            Framing::ProtobufList => Scanner::ProtobufList(ProtobufListScanner::default()),
        };
        Self {
            scanner,
            limit: DEFAULT_FRAME_LIMIT,
            skipping: false,
            gzip: None,
            input: Input::default(),
            partial: Vec::new(),
            found: Found::Nothing,
            dropped: 0,
            unfit: None,
            envelope: false,
            offset: 0,
            failure: None,
        }
    }

    /// Takes messages of up to `limit` bytes. A larger one is an error before it is held.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Leaves out messages that are too large or too deep: each is a [`FrameError::Skipped`] where it would have
    /// come, after which the stream goes on. The envelope of a list is never left out.
    #[must_use]
    pub fn skipping(mut self) -> Self {
        self.skipping = true;
        match &mut self.scanner {
            Scanner::Json(values) => values.tolerate_depth(),
            Scanner::List(list) => list.values().tolerate_depth(),
            Scanner::Length(_) | Scanner::ProtobufList(_) => {}
        }
        self
    }

    /// Takes a stream with content encoding gzip: any number of members, one after another.
    ///
    /// What a member has so far comes out without waiting for its end, and so before its checksum could be
    /// checked; a checksum that is wrong is an error after those messages.
    #[must_use]
    pub fn gzip(mut self) -> Self {
        self.gzip = Some(Gunzip::new());
        self
    }

    /// Adds the next bytes of the stream. After a failure they are dropped.
    pub fn push(&mut self, bytes: impl Into<Bytes>) {
        if self.failure.is_none() {
            self.input.push(bytes.into());
        }
    }

    /// Goes on to the next message, which [`frame`](Self::frame) then shows; `false` when more bytes are needed for it.
    ///
    /// When the stream has `ended`, `false` means that it ended well, between two messages, and what only the end
    /// completes is a message too. To be called until then. A message, a list or a gzip member of which only a part came is
    /// an error.
    ///
    /// ```
    /// use informer_model::{FrameDecoder, Framing};
    ///
    /// let mut decoder = FrameDecoder::new(Framing::Json);
    /// decoder.push("{} 12");
    /// assert!(decoder.advance(false)? && decoder.frame() == b"{}");
    /// assert!(!decoder.advance(false)?, "the number may go on");
    /// assert!(decoder.advance(true)? && decoder.frame() == b"12");
    /// assert!(!decoder.advance(true)?);
    /// # Ok::<(), informer_model::FrameError>(())
    /// ```
    pub fn advance(&mut self, ended: bool) -> Result<bool, FrameError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        self.release();
        let outcome = match self.read() {
            Ok(false) if ended => self.end(),
            outcome => outcome,
        };
        match outcome {
            Err(failure) if !matches!(failure, FrameError::Skipped { .. }) => Err(self.fail(failure)),
            outcome => outcome,
        }
    }

    /// The message that [`advance`](Self::advance) has found; empty when it has found none.
    pub fn frame(&self) -> &[u8] {
        match &self.found {
            Found::Nothing => &[],
            Found::Partial => &self.partial,
            Found::Piece { frame, .. } => {
                let piece = self.gzip.as_ref().map_or_else(|| self.input.front(), Gunzip::plain);
                piece.get(frame.clone()).unwrap_or_default()
            }
        }
    }

    /// The next message, or `None` when more bytes are needed for it.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, FrameError> {
        let found = self.advance(false)?;
        Ok(self.take(found))
    }

    /// Whether the message that came last is the envelope of a list.
    pub fn is_envelope(&self) -> bool {
        self.envelope
    }

    /// The stream has ended: like [`next_frame`](Self::next_frame), but `None` means that it ended well,
    /// between two messages. To be called until then.
    ///
    /// A number that only the end of the stream completes comes from here. A message, a list or a gzip member of
    /// which only a part came is an error.
    pub fn finish(&mut self) -> Result<Option<Bytes>, FrameError> {
        let found = self.advance(true)?;
        Ok(self.take(found))
    }

    /// How many bytes are held: those not yet read, and those of a message that is not complete.
    pub fn buffered(&self) -> usize {
        let plain = self.gzip.as_ref().map_or(0, |gzip| gzip.plain().len());
        self.input.len + plain + self.partial.len() + self.scanner.held()
    }

    /// A copy of the message that was found, of its exact size.
    fn take(&mut self, found: bool) -> Option<Bytes> {
        let frame = found.then(|| Bytes::copy_from_slice(self.frame()));
        self.release();
        frame
    }

    /// Goes past the message that was found.
    fn release(&mut self) {
        match mem::take(&mut self.found) {
            Found::Nothing => {}
            Found::Partial if self.partial.capacity() > KEPT_BUFFER => self.partial = Vec::new(),
            Found::Partial => self.partial.clear(),
            Found::Piece { passed, .. } => self.pass(passed),
        }
    }

    fn pass(&mut self, count: usize) {
        match &mut self.gzip {
            None => self.input.advance(count),
            Some(gzip) => gzip.advance(count),
        }
    }

    /// What only the end of the stream completes.
    fn end(&mut self) -> Result<bool, FrameError> {
        let cut_member = self.gzip.as_ref().and_then(Gunzip::cut_member);
        if cut_member.is_none() && self.scanner.ends_here() {
            self.found = Found::Partial;
            return Ok(true);
        }
        if cut_member.is_none()
            && let Scanner::ProtobufList(list) = &mut self.scanner
            && let Some(envelope) = list.last()
        {
            (self.envelope, self.partial, self.found) = (true, envelope, Found::Partial);
            return Ok(true);
        }
        if let Some(offset) = self.scanner.unfinished_list() {
            let pending = usize::try_from(self.offset - offset).unwrap_or(usize::MAX);
            return Err(FrameError::Truncated { offset, pending });
        }
        match self.scanner.prefix() + self.partial.len() + self.dropped {
            0 => cut_member.map_or(Ok(false), Err),
            pending => {
                let offset = self.offset - pending as u64;
                Err(FrameError::Truncated { offset, pending })
            }
        }
    }

    fn read(&mut self) -> Result<bool, FrameError> {
        loop {
            let piece = match &mut self.gzip {
                None => self.input.front(),
                Some(gzip) => gzip.fill(&mut self.input)?,
            };
            if piece.is_empty() {
                return Ok(false);
            }
            // One byte more than there is room for tells a frame that ends at the limit from one that does
            // not, and lets every cut of a stream fail with the same error.
            let room =
                if self.dropped > 0 { usize::MAX } else { self.limit.saturating_sub(self.partial.len()) };
            let piece = &piece[..piece.len().min(room.saturating_add(1))];
            let Scan { skip, take, end } =
                self.scanner.scan(piece, self.offset, self.limit, self.skipping)?;
            if self.unfit.is_none() && take > 0 {
                self.unfit = self.scanner.too_deep();
            }
            let mut part = skip..skip + take;
            if self.dropped > 0 || self.partial.len() + take > self.limit {
                let offset = self.offset + skip as u64 - self.partial.len() as u64;
                let too_large = FrameError::TooLarge { offset, limit: self.limit, announced: None };
                if !self.skipping {
                    return Err(too_large);
                }
                self.unfit.get_or_insert(too_large);
                let came = self.partial.len() + take;
                self.partial.truncate(BEGINNING.min(self.limit));
                part.end = skip + take.min(BEGINNING.min(self.limit) - self.partial.len());
                self.dropped += came - self.partial.len() - part.len();
            }
            let passed = skip + take;
            self.offset += passed as u64;
            let envelope = self.scanner.envelope();
            self.envelope = envelope.is_some();
            if end && self.partial.is_empty() && envelope.is_none() {
                self.found = Found::Piece { frame: part, passed };
            } else {
                match envelope {
                    Some(envelope) => (self.partial, self.found) = (envelope, Found::Partial),
                    None => {
                        append(&mut self.partial, &piece[part], self.limit);
                        self.found = if end { Found::Partial } else { Found::Nothing };
                    }
                }
                self.pass(passed);
            }
            if !matches!(self.found, Found::Nothing) {
                self.dropped = 0;
                let Some(reason) = self.unfit.take() else { return Ok(true) };
                let beginning = self.take(true).unwrap_or_default();
                return Err(FrameError::Skipped { beginning, reason: reason.into() });
            }
        }
    }

    /// Remembers the failure and gives all memory back.
    fn fail(&mut self, failure: FrameError) -> FrameError {
        self.failure = Some(failure.clone());
        (self.input, self.partial, self.gzip) = (Input::default(), Vec::new(), None);
        self.found = Found::Nothing;
        match &mut self.scanner {
            Scanner::List(list) => *list = ListScanner::default(),
            Scanner::ProtobufList(list) => *list = ProtobufListScanner::default(),
            Scanner::Json(_) | Scanner::Length(_) => {}
        }
        failure
    }
}

impl fmt::Debug for FrameDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameDecoder")
            .field("limit", &self.limit)
            .field("gzip", &self.gzip.is_some())
            .field("offset", &self.offset)
            .field("buffered", &self.buffered())
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

/// Where the message lies that was found.
#[derive(Default)]
enum Found {
    #[default]
    Nothing,
    /// There, in the piece that is read, of which so many bytes are behind it then.
    Piece { frame: Range<usize>, passed: usize },
    /// It is what came in pieces.
    Partial,
}

/// Grows by doubling, but not past the limit.
fn append(partial: &mut Vec<u8>, part: &[u8], limit: usize) {
    let needed = partial.len() + part.len();
    if needed > partial.capacity() {
        let capacity = partial.capacity().saturating_mul(2).min(limit).max(needed);
        partial.reserve_exact(capacity - partial.len());
    }
    partial.extend_from_slice(part);
}

/// What a scanner found in a piece of the stream: `skip` bytes of no frame, then `take` bytes of the frame,
/// and whether it ends with them. What follows is left for the next scan.
struct Scan {
    skip: usize,
    take: usize,
    end: bool,
}

enum Scanner {
    Json(JsonScanner),
    Length(LengthScanner),
    List(ListScanner),
    ProtobufList(ProtobufListScanner),
}

impl Scanner {
    /// Looks at the bytes of the stream that begin at `offset` and were not looked at before.
    fn scan(&mut self, piece: &[u8], offset: u64, limit: usize, skipping: bool) -> Result<Scan, FrameError> {
        match self {
            Self::Json(json) => json.scan(piece, offset),
            // A message that will be skipped may announce any length.
            Self::Length(length) => length.scan(piece, offset, if skipping { usize::MAX } else { limit }),
            Self::List(list) => list.scan(piece, offset, limit),
            Self::ProtobufList(list) => list.scan(piece, offset, limit),
        }
    }

    /// Whether the frame is too deep, as far as it came; only when that is tolerated.
    fn too_deep(&mut self) -> Option<FrameError> {
        match self {
            Self::Json(json) => json.too_deep(),
            Self::List(list) => list.values().too_deep(),
            Self::Length(_) | Self::ProtobufList(_) => None,
        }
    }

    /// The envelope of a list, once, when it is complete.
    fn envelope(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::List(list) => list.envelope(),
            _ => None,
        }
    }

    /// Where a list begins that is not complete.
    fn unfinished_list(&self) -> Option<u64> {
        match self {
            Self::List(list) => list.unfinished(),
            Self::ProtobufList(list) => list.unfinished(),
            _ => None,
        }
    }

    /// How many bytes are kept beside those of the frame.
    fn held(&self) -> usize {
        match self {
            Self::List(list) => list.held(),
            Self::ProtobufList(list) => list.held(),
            _ => 0,
        }
    }

    /// Whether the end of the stream completes the frame; then the scanner is ready for another.
    fn ends_here(&mut self) -> bool {
        match self {
            Self::Json(json) => json.ends_here(),
            Self::Length(_) | Self::List(_) | Self::ProtobufList(_) => false,
        }
    }

    /// How many bytes before the frame were skipped that belong to it.
    fn prefix(&self) -> usize {
        match self {
            Self::Json(_) | Self::List(_) | Self::ProtobufList(_) => 0,
            Self::Length(length) => length.prefix(),
        }
    }
}

/// The chunks that were pushed and not yet read. None of them is empty.
#[derive(Default)]
struct Input {
    chunks: VecDeque<Bytes>,
    len: usize,
}

impl Input {
    fn push(&mut self, chunk: Bytes) {
        self.len += chunk.len();
        if !chunk.is_empty() {
            self.chunks.push_back(chunk);
        }
    }

    /// The oldest bytes; empty when there are none at all.
    fn front(&self) -> &[u8] {
        self.chunks.front().map_or(&[], |chunk| chunk)
    }

    /// Leaves out bytes of the front.
    fn advance(&mut self, count: usize) {
        self.len -= count;
        if let Some(chunk) = self.chunks.front_mut() {
            chunk.advance(count);
            if chunk.is_empty() {
                self.chunks.pop_front();
            }
        }
    }
}
