//! The wire form of column types. Types with members have a list of them behind all else; the bytes of the other types have no place
//! for it.

use super::{Collation, ColumnType, TypeKind};
use alloc::{string::String, vec::Vec};
use core::fmt;
use lats_base::limits;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, SeqAccess, Visitor},
    ser::SerializeStruct,
};

const FIELDS: &[&str] = &["kind", "unsigned", "nullable", "collation", "is_boolean", "members"];

impl Serialize for ColumnType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let has_members = self.kind.has_members();
        let count = FIELDS.len() - usize::from(!has_members);
        let mut out = serializer.serialize_struct("ColumnType", count)?;
        out.serialize_field("kind", &self.kind)?;
        out.serialize_field("unsigned", &self.unsigned)?;
        out.serialize_field("nullable", &self.nullable)?;
        out.serialize_field("collation", &self.collation)?;
        out.serialize_field("is_boolean", &self.is_boolean)?;
        if has_members {
            out.serialize_field("members", &self.members)?;
        }
        out.end()
    }
}

impl<'de> Deserialize<'de> for ColumnType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("ColumnType", FIELDS, InOrder)
    }
}

/// Reads the fields one after the other.
struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = ColumnType;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a column type")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<ColumnType, A::Error> {
        let kind: TypeKind = field(&mut fields)?;
        let (unsigned, nullable) = (field(&mut fields)?, field(&mut fields)?);
        let collation: Collation = field(&mut fields)?;
        let is_boolean = field(&mut fields)?;
        let members: Vec<String> =
            if kind.has_members() { field(&mut fields)? } else { Vec::new() };
        if members.len() > limits::TYPE_MEMBERS_MAX {
            return Err(A::Error::custom("too many members"));
        }
        Ok(ColumnType { kind, unsigned, nullable, collation, is_boolean, members })
    }
}

fn field<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(fields: &mut A) -> Result<T, A::Error> {
    fields.next_element()?.ok_or_else(|| A::Error::custom("a column type is cut off"))
}
