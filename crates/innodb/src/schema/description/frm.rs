//! MariaDB's `.frm` -> [`TableDescription`].
//!
//! Behind the row of defaults lie the connect string, the engine's name and the clause about partitions; a comment of
//! the table is in the form, or behind that clause if it is long.

use super::sdi::{character_bytes, recalculation};
use super::{
    ColumnDescription, KeyDescription, KeyKind, KeyPart, KeyPartOf, TableDescription, option_bits,
    partition_clause, row_format_word,
};
use crate::schema::frm;
use crate::schema::frm_bytes::{Bytes, corrupt};
use crate::schema::frm_key::{self, FrmKey};
use crate::schema::layout::prefix_bytes;
use crate::schema::{Column, ColumnNo};
use crate::{Error, ErrorKind, Result};

/// The version of the file's format.
const VERSION: usize = 2;
const MAX_ROWS: usize = 18;
const MIN_ROWS: usize = 22;
const OPTIONS: usize = 30;
const AVG_ROW_LENGTH: usize = 34;
/// TRANSACTIONAL in the low two bits, PAGE_CHECKSUM in the next two: 1 is off, 2 is on. In the two behind them 2 says
/// that the table is a sequence.
const CHOICES: usize = 39;
const ROW_FORMAT: usize = 40;
const STATS_SAMPLE_PAGES: usize = 42;
const STATS_AUTO_RECALC: usize = 44;
const KEY_BLOCK_SIZE: usize = 62;
const COMMENT_IN_FORM: usize = 46;
/// The comment's length in the form if it is behind the clause about partitions.
const LONG_COMMENT: u8 = 255;

/// How the table in a `.frm` was created; foreign keys are in another file.
///
/// # Errors
/// `Corrupt` if the file contradicts itself, `Unsupported` for an attribute that is not known.
pub(crate) fn description_from_frm(bytes: &[u8]) -> Result<TableDescription> {
    let frm = Bytes::new(bytes);
    frm::check_header(frm)?;
    let (extra, form_at, form) = frm::parts(frm)?;
    let mut unprinted = (extra.has_application_period || extra.is_without_overlaps)
        .then(|| not_printed("PERIOD FOR of an application"));
    let fields = frm::fields(frm, &form, &extra)?;
    let names: Vec<(String, bool)> = fields
        .iter()
        .map(|field| (field.column.name.clone(), field.visibility.is_unknown_to_sql()))
        .collect();
    let (checks_of_fields, checks) = form.checks()?;
    let mut columns = Vec::new();
    for (no, field) in fields.iter().enumerate().filter(|(_, field)| !field.visibility.is_unknown_to_sql()) {
        let is_start = extra.row_start == Some(no);
        let is_end = extra.row_end == Some(no);
        columns.push(ColumnDescription {
            is_hidden: field.visibility.is_of_system(),
            without_versioning: extra.is_without_versioning(no),
            row_period: if is_start { Some("START") } else { is_end.then_some("END") },
            check: checks_of_fields.get(no).cloned().flatten(),
            ..ColumnDescription::default()
        });
    }
    let (columns_shown, numbers) = frm::shown(fields);
    let section = frm.rest(frm.size16(6)?)?;
    let keys = frm_key::read(section)?;
    let tail = Tail::read(frm, form_at, &keys)?;
    let table_block_size = u32::from(frm.u16(KEY_BLOCK_SIZE)?);
    let mut described = Vec::new();
    for (no, key) in keys.iter().enumerate() {
        let parser = tail.parsers.get(no).cloned().flatten();
        let ignored = extra.is_ignored(no);
        described.push(describe_key(key, &columns_shown, &numbers, table_block_size, parser, ignored)?);
    }
    let name_of = |field: Option<usize>| field.and_then(|no| names.get(no)).map(|(name, _)| name.clone());
    let is_period_shown = columns.iter().any(|column| column.row_period.is_some() && !column.is_hidden);
    let mut of_table = extra.engine_options()?;
    let mut options = options(frm)?;
    if !tail.connection.is_empty() {
        options.push(("CONNECTION".to_owned(), format!("'{}'", tail.connection.replace('\'', "''"))));
    }
    options.append(&mut of_table);
    if keys.iter().any(|key| key.is_vector) {
        unprinted.get_or_insert_with(|| not_printed("a VECTOR key"));
    }
    let (mut partitioned_by, mut partitions) =
        partition_clause::read(&tail.partitioning, name_of(extra.row_end));
    let partitioning = match with_texts(&tail.partitioning) {
        Ok(clause) => {
            (partitioned_by, partitions) = partition_clause::read(&clause, name_of(extra.row_end));
            clause
        }
        Err(error) => {
            unprinted.get_or_insert(error.to_string());
            partitions.iter_mut().for_each(|partition| partition.description = None);
            String::new()
        }
    };
    Ok(TableDescription {
        columns,
        keys: described,
        checks,
        period: name_of(extra.row_start).zip(name_of(extra.row_end)).filter(|_| is_period_shown),
        system_versioning: extra.row_end.is_some(),
        comment: tail.comment,
        options,
        partitioning: match partitioning.is_empty() {
            true => String::new(),
            false => format!("\n{partitioning}"),
        },
        partitioned_by,
        partitions,
        is_sequence: frm.u8(CHOICES)? >> 4 & 3 == 2,
        version: Some(frm.u8(VERSION)?),
        server_version: Some(frm.u32(frm::SERVER_VERSION)?),
        unprinted,
        ..TableDescription::default()
    })
}

fn not_printed(what: &str) -> String {
    format!("{what} cannot be printed as the server prints it")
}

fn unsupported(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, not_printed(what))
}

fn options(frm: Bytes<'_>) -> Result<Vec<(String, String)>> {
    let mut options = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        options.extend(value.map(|value| (name.to_owned(), value)));
    };
    let positive = |value: u32| (value > 0).then(|| value.to_string());
    let bits = u32::from(frm.u16(OPTIONS)?);
    let has = |bit: u32| bits & bit != 0;
    let either = |on: bool, off: bool| if on { Some("1") } else { off.then_some("0") }.map(str::to_owned);
    add("MIN_ROWS", positive(frm.u32(MIN_ROWS)?));
    add("MAX_ROWS", positive(frm.u32(MAX_ROWS)?));
    add("AVG_ROW_LENGTH", positive(frm.u32(AVG_ROW_LENGTH)?));
    add("PACK_KEYS", either(has(option_bits::PACK_KEYS), has(option_bits::NO_PACK_KEYS)));
    add(
        "STATS_PERSISTENT",
        either(has(option_bits::STATS_PERSISTENT), has(option_bits::NO_STATS_PERSISTENT)),
    );
    add("STATS_AUTO_RECALC", recalculation(u64::from(frm.u8(STATS_AUTO_RECALC)?)));
    add("STATS_SAMPLE_PAGES", positive(u32::from(frm.u16(STATS_SAMPLE_PAGES)?)));
    add("CHECKSUM", has(option_bits::CHECKSUM).then(|| "1".to_owned()));
    let choices = frm.u8(CHOICES)?;
    let choice = |bits: u8| match bits & 3 {
        1 => Some("0".to_owned()),
        2 => Some("1".to_owned()),
        _ => None,
    };
    add("PAGE_CHECKSUM", choice(choices >> 2));
    add("DELAY_KEY_WRITE", has(option_bits::DELAY_KEY_WRITE).then(|| "1".to_owned()));
    let row_format = row_format_word(u32::from(frm.u8(ROW_FORMAT)?));
    add("ROW_FORMAT", row_format.map(str::to_owned));
    add("TRANSACTIONAL", choice(choices));
    add("KEY_BLOCK_SIZE", positive(u32::from(frm.u16(KEY_BLOCK_SIZE)?)));
    Ok(options)
}

fn describe_key(
    key: &FrmKey,
    columns: &[Column],
    numbers: &[Option<ColumnNo>],
    table_block_size: u32,
    parser: Option<String>,
    ignored: bool,
) -> Result<KeyDescription> {
    let kind = match () {
        () if key.fulltext => KeyKind::FullText,
        () if key.spatial => KeyKind::Spatial,
        () if key.is_vector => KeyKind::Vector,
        () if key.name == "PRIMARY" && key.unique => KeyKind::Primary,
        () if key.unique => KeyKind::Unique,
        () => KeyKind::Plain,
    };
    let mut parts = Vec::with_capacity(key.parts.len());
    for part in &key.parts {
        let wrong = || corrupt(format!("key {} names column {}", key.name, part.field));
        let Some(no) = *numbers.get(part.field).ok_or_else(wrong)? else { continue };
        let column = columns.get(no.0).ok_or_else(wrong)?;
        let column_type = &column.column_type;
        let bytes = prefix_bytes(column_type, u32::from(part.length_bytes));
        let has_prefix =
            !matches!(kind, KeyKind::FullText | KeyKind::Spatial | KeyKind::Vector) && part.length_bytes > 0;
        parts.push(KeyPart {
            of: KeyPartOf::Column(no),
            prefix: bytes.filter(|_| has_prefix).map(|bytes| bytes / character_bytes(column_type)),
            descending: part.descending,
            nullable: column.nullable,
        });
    }
    let block_size = u32::from(key.block_size);
    Ok(KeyDescription {
        name: key.name.clone(),
        kind,
        parts,
        algorithm: key.algorithm,
        block_size: (block_size != 0 && block_size != table_block_size).then_some(block_size),
        comment: key.comment.clone(),
        parser,
        ignored,
    })
}

/// What lies behind the row of defaults.
#[derive(Default)]
struct Tail {
    connection: String,
    partitioning: String,
    /// The parser of each key.
    parsers: Vec<Option<String>>,
    comment: String,
}

impl Tail {
    fn read(frm: Bytes<'_>, form_at: usize, keys: &[FrmKey]) -> Result<Tail> {
        let mut tail = Tail::default();
        let text = |bytes: Bytes<'_>| String::from_utf8_lossy(bytes.as_slice()).into_owned();
        let rest = frm::behind_defaults(frm)?;
        let mut at = 0;
        let len = rest.size16(at)?;
        tail.connection = text(rest.slice(at + 2, len)?);
        at += 2 + len;
        at += 2 + rest.size16(at)?;
        let len = rest.size32(at)?;
        tail.partitioning = text(rest.slice(at + 4, len)?);
        // A zero ends the clause, and a byte says whether the server partitions on its own.
        at = at.saturating_add(len).saturating_add(6);
        for key in keys {
            let parser = match key.has_parser {
                true => {
                    let name = rest.rest(at)?.as_slice();
                    let len = name.iter().position(|byte| *byte == 0);
                    let len = len.ok_or_else(|| corrupt("the name of a parser has no end"))?;
                    at += len + 1;
                    Some(String::from_utf8_lossy(&name[..len]).into_owned())
                }
                false => None,
            };
            tail.parsers.push(parser);
        }
        tail.comment = match frm.u8(form_at + COMMENT_IN_FORM)? {
            LONG_COMMENT => text(rest.slice(at + 2, rest.size16(at)?)?),
            len => text(frm.slice(form_at + COMMENT_IN_FORM + 1, usize::from(len))?),
        };
        Ok(tail)
    }
}

/// A clause about partitions in which texts, which the `.frm` spells `_charset 0x...`, are in quotes.
fn with_texts(clause: &str) -> Result<String> {
    let mut text = String::with_capacity(clause.len());
    let mut rest = clause;
    while let Some(at) = rest.find(['`', '\'', '_']) {
        let (before, found) = rest.split_at(at);
        text.push_str(before);
        let is_word = before.ends_with(|c: char| c.is_ascii_alphanumeric());
        if found.starts_with('_')
            && !is_word
            && let Some((literal, len)) = hexadecimal_text(found)?
        {
            text.push_str(&literal);
            rest = &found[len..];
            continue;
        }
        let quote = found.chars().next().filter(|quote| *quote != '_');
        let len = quote.map_or(1, |quote| found[1..].find(quote).map_or(found.len(), |end| end + 2));
        text.push_str(&found[..len]);
        rest = &found[len..];
    }
    text.push_str(rest);
    Ok(text)
}

/// The literal for the `_charset 0x...` at the start of `text`, and the length of the latter.
fn hexadecimal_text(text: &str) -> Result<Option<(String, usize)>> {
    let Some((charset, digits)) = text[1..].split_once(" 0x") else { return Ok(None) };
    if charset.is_empty() || !charset.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(None);
    }
    let count = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
    let bytes: Option<Vec<u8>> =
        (0..count / 2).map(|no| u8::from_str_radix(&digits[2 * no..2 * no + 2], 16).ok()).collect();
    let is_plain = |c: char| c >= ' ' && c != '\\' && c != char::REPLACEMENT_CHARACTER;
    let decoded =
        bytes.filter(|_| charset != "binary").map(|bytes| crate::schema::text::decode(charset, &bytes));
    match decoded.filter(|text| text.chars().all(is_plain)) {
        Some(decoded) => {
            let literal = format!("'{}'", decoded.replace('\'', "''"));
            Ok(Some((literal, 1 + charset.len() + 3 + count)))
        }
        None => Err(unsupported("a text in the bounds of partitions")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_partition_clauses_are_in_quotes() {
        let clause =
            "LIST COLUMNS(`_utf8mb4 0x61`) (PARTITION `a_b` VALUES IN (_utf8mb4 0x61,_latin1 0xE427,f_x))";
        let expected = "LIST COLUMNS(`_utf8mb4 0x61`) (PARTITION `a_b` VALUES IN ('a','\u{e4}''',f_x))";
        assert_eq!(with_texts(clause).unwrap(), expected);
        assert!(with_texts("(_binary 0x00)").is_err());
    }
}
