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
        return Err(Damaged("it does not begin as a control file does"));
    }
    // Heads of other versions may have another length. The checksum is the end of each.
    if !has_whole_head(head.head_bytes as usize, file) {
        return Err(Damaged("the checksum of its head is wrong"));
    }
    if head.version > VERSION {
        return Err(Wrong(NEWER_VERSION));
    }
    let content = file.get(head.head_bytes as usize..).unwrap_or_default();
    let content = content.get(..head.content_bytes as usize);
    let content = content.ok_or(Damaged("it is shorter than its head says"))?;
    if hash::partition_hash(content) != head.content_checksum {
        return Err(Damaged("the checksum of its content is wrong"));
    }
    Ok((Owner { cluster: head.cluster, node: head.node }, content))
}

/// No head is longer.
const HEAD_BYTES_MAX: usize = 4_096;

/// True if the file begins with a head of so many bytes whose checksum fits: that of all before it, at its end.
fn has_whole_head(head_bytes: usize, file: &[u8]) -> bool {
    let is_a_length = (size_of::<Head>()..=HEAD_BYTES_MAX).contains(&head_bytes);
    let Some(head) = file.get(..head_bytes).filter(|_| is_a_length) else { return false };
    let (before, checksum) = head.split_at(head_bytes - size_of::<u64>());
    checksum == hash::partition_hash(before).to_le_bytes()
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
    fn a_newer_version_is_named_if_its_head_is_whole() {
        const HEAD: usize = size_of::<Head>();
        let damaged = Err(Unreadable::Damaged("the checksum of its head is wrong"));
        let newer = Err(Unreadable::Wrong(NEWER_VERSION));
        let mut file = encode(OWNER, b"a state");
        file[8] += 1;
        assert_eq!(decode(OWNER, &file), damaged, "another version by damage");
        file[12] += 8;
        assert_eq!(decode(OWNER, &file), damaged, "and another length");
        let mut longer = file[..HEAD].to_vec();
        let checksum = hash::partition_hash(&longer);
        longer.extend_from_slice(&checksum.to_le_bytes());
        longer.extend_from_slice(b"what nobody knows yet");
        assert_eq!(decode(OWNER, &longer), newer, "its checksum is elsewhere");
        file[12] -= 8;
        let checksum = hash::partition_hash(&file[..HEAD - 8]);
        file[HEAD - 8..HEAD].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(decode(OWNER, &file), newer);
    }

    #[test]
    fn what_is_wrong_is_named_apart() {
        let file = encode(OWNER, b"a state");
        let why = |file: &[u8]| decode(OWNER, file).unwrap_err().why();
        assert_eq!(why(&file[..40]), "it is too short");
        assert_eq!(why(&file[..file.len() - 1]), "it is shorter than its head says");
        let with = |at: usize| {
            let mut file = file.clone();
            file[at] ^= 1;
            file
        };
        assert_eq!(why(&with(0)), "it does not begin as a control file does");
        assert_eq!(why(&with(30)), "the checksum of its head is wrong");
        assert_eq!(why(&with(file.len() - 1)), "the checksum of its content is wrong");
    }

    #[test]
    fn the_file_of_another_node_or_cluster_is_refused() {
        let file = encode(OWNER, b"a state");
        let why = Unreadable::Wrong("it belongs to another cluster or node");
        assert_eq!(decode(Owner { cluster: 8, ..OWNER }, &file), Err(why));
        assert_eq!(decode(Owner { node: NodeId::new(3), ..OWNER }, &file), Err(why));
    }
}
