//! Sets of every kind, both ways.

use super::*;

fn charset(name: &str) -> Charset {
    Charset::lookup(name).unwrap_or_else(|| panic!("{name}"))
}

fn bytes(bytes: &[u8]) -> Encoded<'_> {
    Encoded::Bytes(bytes.into())
}

#[test]
fn sets_decode_and_encode() {
    for (name, text, stored) in [
        ("utf8mb4", "a😀", &b"a\xf0\x9f\x98\x80"[..]),
        ("latin1", "é€", b"\xe9\x80"),
        ("latin1", "\u{81}ÿ", b"\x81\xff"),
        ("ucs2", "日x", b"\x65\xe5\0x"),
        ("utf16le", "日x", b"\xe5\x65x\0"),
        ("utf16", "😀", b"\xd8\x3d\xde\0"),
        ("utf32", "😀", b"\0\x01\xf6\0"),
        ("cp1251", "Ж", b"\xc6"),
        ("gbk", "中", b"\xd6\xd0"),
        ("ascii", "abc", b"abc"),
        ("cp850", "é█x", b"\x82\xdbx"),
        ("cp852", "ł", b"\x88"),
        ("swe7", "ÅÄ", b"]["),
        ("tis620", "ก", b"\xa1"),
        ("hebrew", "\u{200e}א", b"\xfd\xe0"),
        ("ujis", "ｱ丂", b"\x8e\xb1\x8f\xb0\xa1"),
        ("gb18030", "中\u{80}😀", b"\xd6\xd0\x81\x30\x81\x30\x94\x39\xfc\x36"),
    ] {
        assert_eq!(charset(name).decode(stored).unwrap(), text, "{name}");
        assert_eq!(charset(name).encode(text), bytes(stored), "{name}");
    }
}

/// Where the servers differ from what browsers take these sets for.
#[test]
fn east_asian_symbols_are_the_servers() {
    for (name, text, stored) in [
        ("sjis", "\\~", &b"\\~"[..]),
        (
            "sjis",
            "\u{301c}\u{2016}\u{2212}\u{a2}\u{a3}\u{ac}",
            b"\x81\x60\x81\x61\x81\x7c\x81\x91\x81\x92\x81\xca",
        ),
        ("cp932", "\u{ff5e}\u{2225}\u{ff0d}\u{ffe0}\u{ffe1}", b"\x81\x60\x81\x61\x81\x7c\x81\x91\x81\x92"),
        (
            "ujis",
            "\u{301c}\u{2016}\u{2212}\u{a2}\u{a3}\u{ac}",
            b"\xa1\xc1\xa1\xc2\xa1\xdd\xa1\xf1\xa1\xf2\xa2\xcc",
        ),
        (
            "eucjpms",
            "\u{ff5e}\u{2225}\u{ff0d}\u{ffe0}\u{ffe1}\u{ffe2}",
            b"\xa1\xc1\xa1\xc2\xa1\xdd\xa1\xf1\xa1\xf2\xa2\xcc",
        ),
    ] {
        assert_eq!(charset(name).decode(stored).unwrap(), text, "{name}");
    }
}

#[test]
fn bytes_without_a_character_are_question_marks() {
    for (name, text, stored) in [
        ("sjis", "??a", &b"\x87\x40\xeb\x9fa"[..]),
        ("ascii", "??", "é".as_bytes()),
        ("cp1250", "?", b"\x81"),
        ("gb2312", "?", b"\xa2\xa1"),
        ("ucs2", "??", b"\xd8\x3d\xde\0"),
        ("big5", "?", b"\xff"),
    ] {
        assert_eq!(charset(name).decode(stored).unwrap(), text, "{name}");
    }
    assert_eq!(charset("utf8mb4").decode(b"\xff"), None);
}

#[test]
fn texts_of_several_forms_are_ambiguous() {
    assert_eq!(charset("cp1250").encode("a?"), Encoded::Ambiguous);
    assert_eq!(charset("ucs2").encode("a?"), Encoded::Ambiguous);
    assert_eq!(charset("latin1").encode("a?"), bytes(b"a?"));
    assert_eq!(charset("utf8mb4").encode("a?"), bytes(b"a?"));
    assert_eq!(charset("armscii8").encode("'"), Encoded::Ambiguous);
    assert_eq!(charset("cp932").encode("\u{2252}"), Encoded::Ambiguous);
    assert_eq!(charset("cp932").encode("a"), bytes(b"a"));
}

#[test]
fn characters_outside_of_a_set_are_absent() {
    assert_eq!(charset("latin1").encode("日"), Encoded::Absent);
    assert_eq!(charset("utf8mb3").encode("😀"), Encoded::Absent);
    assert_eq!(charset("ucs2").encode("😀"), Encoded::Absent);
    assert_eq!(charset("swe7").encode("["), Encoded::Absent);
    assert_eq!(charset("cp1257").encode("\u{fffd}"), Encoded::Absent);
    assert!(Charset::lookup("filename").is_none());
    assert!(Charset::lookup("binary").is_none());
}

#[test]
fn prefixes_are_cut_at_characters() {
    let utf8 = charset("utf8mb4");
    assert_eq!(utf8.prefix("aéb".as_bytes(), 2), "aé".as_bytes());
    assert_eq!(utf8.prefix("aé".as_bytes(), 9), "aé".as_bytes());
    assert_eq!(charset("latin1").prefix(b"abc", 2), b"ab");
    assert_eq!(charset("gbk").prefix(b"a\xd6\xd0b", 2), b"a\xd6\xd0");
    assert_eq!(charset("utf16").prefix(b"\xd8\x3d\xde\0\0a", 1), b"\xd8\x3d\xde\0");
    assert_eq!(charset("utf16le").prefix(b"\x3d\xd8\0\xdea\0", 2), b"\x3d\xd8\0\xdea\0");
}

#[test]
fn every_set_of_the_data_file_encodes_what_it_decodes() {
    assert_eq!(file::SETS.len(), 34);
    for set in file::SETS.iter() {
        assert_eq!(set.planes[0].len(), 256, "{}", set.name);
        let charset = charset(&set.name);
        let rows = if set.planes[1].is_empty() { 0..=0 } else { 0x80..=0xffu8 };
        for first in rows {
            for second in 0..=255 {
                let stored: &[u8] = if first == 0 { &[second] } else { &[first, second] };
                let text = charset.decode(stored).unwrap();
                if let Encoded::Bytes(encoded) = charset.encode(&text) {
                    assert_eq!(&*encoded, stored, "{}", set.name);
                }
            }
        }
    }
}
