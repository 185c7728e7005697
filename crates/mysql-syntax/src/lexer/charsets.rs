//! The character sets that an introducer may name.

const CHARSETS: [&[u8]; 42] = [
    b"armscii8",
    b"ascii",
    b"big5",
    b"binary",
    b"cp1250",
    b"cp1251",
    b"cp1256",
    b"cp1257",
    b"cp850",
    b"cp852",
    b"cp866",
    b"cp932",
    b"dec8",
    b"eucjpms",
    b"euckr",
    b"gb18030",
    b"gb2312",
    b"gbk",
    b"geostd8",
    b"greek",
    b"hebrew",
    b"hp8",
    b"keybcs2",
    b"koi8r",
    b"koi8u",
    b"latin1",
    b"latin2",
    b"latin5",
    b"latin7",
    b"macce",
    b"macroman",
    b"sjis",
    b"swe7",
    b"tis620",
    b"ucs2",
    b"ujis",
    b"utf16",
    b"utf16le",
    b"utf32",
    b"utf8mb3",
    b"utf8mb4",
    b"utf8",
];

/// True if MySQL 8.4 has a character set of this name.
#[must_use]
pub fn is_charset(name: &[u8]) -> bool {
    CHARSETS.iter().any(|charset| charset.eq_ignore_ascii_case(name))
}
