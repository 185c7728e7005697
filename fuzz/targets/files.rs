//! Files: redo logs, control files, catalogs. Whatever stands in one, reading it ends with what is good, or with a reason.
#![no_main]

use lats_catalog::Catalog;
use lats_files::{control, redo::{Segment, changes_in}};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = control::open(bytes).map(|(_, content)| content.len());
    let _ = Catalog::decode(bytes);
    assert!(changes_in(bytes).count() <= bytes.len(), "a change takes a byte at least");
    if let Ok(segment) = Segment::open(bytes) {
        let mut read = 0;
        for record in segment {
            read += record.changes().count();
        }
        assert!(read <= bytes.len(), "a change takes a byte at least");
    }
});
