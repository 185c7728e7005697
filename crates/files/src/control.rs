//! A file with the control state: one record, written as a whole. Format: `docs/formats/control.md`.

use alloc::vec::Vec;
use lats_base::{NodeId, hash};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What the file begins with.
pub const MAGIC: [u8; 8] = *b"LATSCTRL";
/// The version of the format.
pub const VERSION: u32 = 1;

const NEWER_VERSION: &str = "a newer version of LatsDB has written it";

/// Whose state it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The cluster.
    pub cluster: u64,
    /// The node.
    pub node: NodeId,
}

/// Why a file is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It was not written as a whole, or has changed since.
    Damaged(&'static str),
    /// It is whole, but not for this node or this version.
    Wrong(&'static str),
}

/// The first 48 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Head {
    magic: [u8; 8],
    version: u32,
    head_bytes: u32,
    cluster: u64,
    node: NodeId,
    reserved: u16,
    /// Of what follows the head.
    content_bytes: u32,
    content_checksum: u64,
    /// Of all before it.
    checksum: u64,
}

impl Head {
    fn checksum(&self) -> u64 {
        hash::partition_hash(&self.as_bytes()[..size_of::<Self>() - size_of::<u64>()])
    }
}

/// The file with this content.
pub fn encode(owner: Owner, content: &[u8]) -> Vec<u8> {
    let mut head = Head {
        magic: MAGIC,
        version: VERSION,
        head_bytes: size_of::<Head>() as u32,
        cluster: owner.cluster,
        node: owner.node,
        reserved: 0,
        content_bytes: content.len() as u32,
        content_checksum: hash::partition_hash(content),
        checksum: 0,
    };
    head.checksum = head.checksum();
    let mut file = head.as_bytes().to_vec();
    file.extend_from_slice(content);
    file
}

/// The content of this node's file.
///
/// # Errors
/// What is wrong with it.
pub fn decode(owner: Owner, file: &[u8]) -> Result<&[u8], Unreadable> {
    let (found, content) = open(file)?;
    if found != owner {
        return Err(Unreadable::Wrong("it belongs to another cluster or node"));
    }
    Ok(content)
}

/// Whose file it is, and its content.
///
/// # Errors
/// What is wrong with it.
pub fn open(file: &[u8]) -> Result<(Owner, &[u8]), Unreadable> {
    use Unreadable::{Damaged, Wrong};
    let (head, _) = Head::read_from_prefix(file).map_err(|_| Damaged("it is too short"))?;
    if head.magic != MAGIC {
        return Err(Damaged("it is no control file"));
    }
    // Heads of other versions may have another length, and their checksums elsewhere.
    if head.version > VERSION && head.head_bytes as usize != size_of::<Head>() {
        return Err(Wrong(NEWER_VERSION));
    }
    if head.checksum != head.checksum() {
        return Err(Damaged("its head is damaged"));
    }
    if head.version > VERSION {
        return Err(Wrong(NEWER_VERSION));
    }
    let content = file.get(head.head_bytes as usize..).unwrap_or_default();
    let content = content.get(..head.content_bytes as usize).ok_or(Damaged("it is cut off"))?;
    if hash::partition_hash(content) != head.content_checksum {
        return Err(Damaged("it is damaged"));
    }
    Ok((Owner { cluster: head.cluster, node: head.node }, content))
}

impl Unreadable {
    /// What is wrong.
    pub fn why(&self) -> &'static str {
        match self {
            Self::Damaged(why) | Self::Wrong(why) => why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Owner = Owner { cluster: 7, node: NodeId::new(2) };

    #[test]
    fn what_is_written_is_read_unless_a_bit_is_another() {
        let file = encode(OWNER, b"a state");
        assert_eq!(decode(OWNER, &file), Ok(&b"a state"[..]));
        for bit in 0..8 * file.len() {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(OWNER, &damaged).is_err(), "bit {bit} is not missed");
        }
        for length in 0..file.len() {
            assert!(decode(OWNER, &file[..length]).is_err(), "{length} bytes are enough");
        }
    }

    #[test]
    fn a_newer_version_is_named_whatever_its_head_looks_like() {
        let newer = Err(Unreadable::Wrong(NEWER_VERSION));
        let mut file = encode(OWNER, b"a state");
        file[8] += 1;
        assert_eq!(decode(OWNER, &file), Err(Unreadable::Damaged("its head is damaged")));
        file[12] += 8;
        assert_eq!(decode(OWNER, &file), newer, "its checksum is elsewhere");
        file[12] -= 8;
        let (mut head, _) = Head::read_from_prefix(&file).unwrap();
        head.checksum = head.checksum();
        file[..size_of::<Head>()].copy_from_slice(head.as_bytes());
        assert_eq!(decode(OWNER, &file), newer);
    }

    #[test]
    fn the_file_of_another_node_or_cluster_is_refused() {
        let file = encode(OWNER, b"a state");
        let why = Unreadable::Wrong("it belongs to another cluster or node");
        assert_eq!(decode(Owner { cluster: 8, ..OWNER }, &file), Err(why));
        assert_eq!(decode(Owner { node: NodeId::new(3), ..OWNER }, &file), Err(why));
    }
}
