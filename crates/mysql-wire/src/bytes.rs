//! Reading and writing the protocol's integers and strings, without indexing.

use crate::error::WireError;

#[cfg(test)]
mod tests;

/// A payload being read from front to back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Everything that is left, which may be nothing.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.rest)
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) =
            self.rest.split_at_checked(count).ok_or(WireError::Malformed("payload too short"))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (taken, rest) =
            self.rest.split_first_chunk().ok_or(WireError::Malformed("payload too short"))?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, WireError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length-encoded integer. The NULL marker 0xFB is refused: no request may hold it.
    pub(crate) fn lenenc_int(&mut self) -> Result<u64, WireError> {
        match self.u8()? {
            small @ 0..=0xFA => Ok(u64::from(small)),
            0xFC => self.u16().map(u64::from),
            0xFD => self.array().map(|[a, b, c]| u64::from(u32::from_le_bytes([a, b, c, 0]))),
            0xFE => self.u64(),
            _ => Err(WireError::Malformed("length-encoded integer")),
        }
    }

    pub(crate) fn lenenc_bytes(&mut self) -> Result<&'a [u8], WireError> {
        let count = usize::try_from(self.lenenc_int()?)
            .map_err(|_| WireError::Malformed("length-encoded string"))?;
        self.take(count)
    }

    /// The bytes before the next NUL, which is consumed too.
    pub(crate) fn nul_bytes(&mut self) -> Result<&'a [u8], WireError> {
        let end = self
            .rest
            .iter()
            .position(|&byte| byte == 0)
            .ok_or(WireError::Malformed("string without its end"))?;
        let taken = self.take(end)?;
        self.u8()?;
        Ok(taken)
    }

    /// As [`Self::nul_bytes`], but the end of the payload ends the string as well: several clients
    /// leave the last string of a packet unterminated.
    pub(crate) fn nul_bytes_or_rest(&mut self) -> &'a [u8] {
        self.nul_bytes().unwrap_or_else(|_| self.rest())
    }
}

/// Bytes as text, for names, where MySQL refuses what is not UTF-8.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, WireError> {
    core::str::from_utf8(bytes).map_err(|_| WireError::Malformed("text is not UTF-8"))
}

pub(crate) fn put_lenenc_int(out: &mut Vec<u8>, number: u64) {
    let bytes = number.to_le_bytes();
    let (marker, count) = match number {
        0..=0xFA => (None, 1),
        0xFB..=0xFFFF => (Some(0xFC), 2),
        0x1_0000..=0xFF_FFFF => (Some(0xFD), 3),
        _ => (Some(0xFE), 8),
    };
    out.extend(marker);
    out.extend(bytes.iter().take(count));
}

pub(crate) fn put_lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_lenenc_int(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
