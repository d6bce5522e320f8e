//! Sizes as people write them: `64MiB`.

use bytesize::ByteSize;
use serde::{Deserialize, Deserializer, Serializer};

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
pub(super) fn serialize<S: Serializer>(size: &ByteSize, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text(*size))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    ByteSize::deserialize(deserializer)
}

/// The largest unit that needs no fraction.
pub(super) fn text(size: ByteSize) -> String {
    let bytes = size.as_u64();
    [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        .into_iter()
        .find(|(_, unit)| bytes != 0 && bytes.is_multiple_of(*unit))
        .map_or_else(|| format!("{bytes}B"), |(name, unit)| format!("{}{name}", bytes / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_back_as_written() {
        for (bytes, written) in [(64 << 20, "64MiB"), (1 << 30, "1GiB"), (1_500, "1500B"), (0, "0B")] {
            assert_eq!(text(ByteSize(bytes)), written);
            assert_eq!(written.parse::<ByteSize>().unwrap(), ByteSize(bytes));
        }
    }
}
