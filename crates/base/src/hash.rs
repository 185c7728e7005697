//! The hash that places rows. Part of the stored and sent format: it never changes.

/// XXH3-64 of the encoded partition key, seed 0. Frozen by the test vectors below.
pub fn partition_hash(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}

/// The bucket of a row, in `0..BUCKET_COUNT`.
pub fn bucket_of(hash: u64) -> u32 {
    (hash % u64::from(crate::limits::BUCKET_COUNT)) as u32
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_partition_hash_never_changes() {
        assert_eq!(super::partition_hash(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(super::partition_hash(b"LatsDB"), super::partition_hash(b"LatsDB"));
    }
}
