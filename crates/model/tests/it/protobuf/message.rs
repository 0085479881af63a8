//! Messages written by hand.

#[derive(Debug, Clone, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    fn varint(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    /// An integer or a bool.
    pub(crate) fn number(self, field: u32, value: i64) -> Self {
        self.varint(u64::from(field) << 3).varint(value as u64)
    }

    pub(crate) fn double(self, field: u32, value: f64) -> Self {
        self.varint(u64::from(field) << 3 | 1).raw(&value.to_le_bytes())
    }

    pub(crate) fn bytes(self, field: u32, value: &[u8]) -> Self {
        self.varint(u64::from(field) << 3 | 2).varint(value.len() as u64).raw(value)
    }

    pub(crate) fn text(self, field: u32, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    /// A message in a field.
    pub(crate) fn sub(self, field: u32, value: Self) -> Self {
        self.bytes(field, &value.0)
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// The fields of both.
    pub(crate) fn then(self, other: Self) -> Self {
        self.raw(&other.0)
    }

    /// The envelope itself, with the bytes that it begins with.
    pub(crate) fn prefixed(self) -> Vec<u8> {
        [b"k8s\0", &self.0[..]].concat()
    }

    /// An object of this kind.
    pub(crate) fn envelope(self, api_version: &str, kind: &str) -> Vec<u8> {
        let kind = Self::default().text(1, api_version).text(2, kind);
        Self::default().sub(1, kind).sub(2, self).prefixed()
    }

    /// The message in an envelope as Kubernetes writes it: `raw` after `typeMeta`.
    pub(crate) fn inside(body: &[u8]) -> Vec<u8> {
        let field = |bytes: &[u8]| {
            let (mut length, mut at) = (0, 1);
            loop {
                length |= usize::from(bytes[at] & 0x7f) << (7 * (at - 1));
                at += 1;
                if bytes[at - 1] < 0x80 {
                    return (bytes[at..at + length].to_vec(), bytes[at + length..].to_vec());
                }
            }
        };
        let (_, after_type_meta) = field(&body[4..]);
        field(&after_type_meta).0
    }
}
