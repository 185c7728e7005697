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
        // From the reference implementation; every length takes another way through the function.
        let vectors = [
            (0, 0x2d06_8005_38d3_94c2),
            (1, 0x13e6_08bc_156d_efed),
            (4, 0x6d92_53b1_6c8b_1ed3),
            (8, 0x6053_9db6_3047_1163),
            (16, 0xb8c8_59b0_f030_b585),
            (100, 0xb593_7857_f0d7_8c9f),
            (200, 0x746c_d002_5327_bf5b),
            (300, 0xfd9a_a0f0_d62e_0227),
        ];
        for (length, hash) in vectors {
            let key: [u8; 300] = core::array::from_fn(|i| (i * 7 + 3) as u8);
            assert_eq!(super::partition_hash(&key[..length]), hash, "{length} bytes");
        }
    }
}
