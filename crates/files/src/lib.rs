//! What stands in a node's files, byte by byte: written by data managers, read by restarts and by people.
//! The formats are described in `docs/formats/`.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(target_endian = "big")]
compile_error!("files are little-endian and read in place");

pub mod control;
pub mod redo;
