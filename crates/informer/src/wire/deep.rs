//! Objects that are nested deeper than a usual stack carries.
//!
//! Decoding, copying and dropping a value go down call by call. Up to the 127 levels that `serde_json` allows by
//! itself any stack is enough. Deeper ones, up to what Go's decoder takes, get a stack made for their depth,
//! so that no object overflows the stack, whatever thread it is on.

use serde::de::DeserializeOwned;

/// The deepest object that is taken. Go's decoder, which every server has, stops there too.
pub(super) const MAX_DEPTH: u32 = 10_000;
/// What `serde_json` decodes by itself.
const USUAL_DEPTH: u32 = 127;
/// More than decoding, copying or dropping takes for one level, in builds without optimisation too. Of a stack
/// only what is used costs memory.
const STACK_FOR_A_LEVEL: usize = 16 << 10;
/// What decoding may use of a stack before it gets another.
const STACK_FOR_DECODING: usize = 16 << 20;

/// Whether a value of this depth needs [`with_stack`].
pub(crate) fn is_deep(depth: u32) -> bool {
    depth > USUAL_DEPTH
}

/// Runs `work`, which goes down into a value of this depth.
pub(crate) fn with_stack<R>(depth: u32, work: impl FnOnce() -> R) -> R {
    if is_deep(depth) { stacker::maybe_grow(stack_for(depth), 2 * stack_for(depth), work) } else { work() }
}

/// Decodes JSON of this depth. Whatever is left of a value that fails half-way is dropped safely, too.
pub(super) fn decode<T: DeserializeOwned>(json: &[u8], depth: u32) -> serde_json::Result<T> {
    if !is_deep(depth) {
        return serde_json::from_slice(json);
    }
    with_stack(depth, || {
        let mut reader = serde_json::Deserializer::from_slice(json);
        reader.disable_recursion_limit();
        let mut growing = serde_stacker::Deserializer::new(&mut reader);
        // At every level there must be room to drop what is below.
        growing.red_zone = stack_for(depth);
        growing.stack_size = stack_for(depth) + STACK_FOR_DECODING;
        let value = T::deserialize(growing)?;
        reader.end()?;
        Ok(value)
    })
}

fn stack_for(depth: u32) -> usize {
    STACK_FOR_A_LEVEL * depth as usize
}
