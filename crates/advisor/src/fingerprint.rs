//! Statements that differ in their literals alone are the same statement; and what a statement does, by its first word.

/// What a statement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It reads tables, and servers explain it.
    Reads,
    /// It changes tables, indexes or statistics, so plans made before may be others.
    ChangesPlans,
    /// It chooses the default database.
    Uses,
    /// It is of no concern.
    Other,
}

/// A statement with its literals left out, white space folded, words in lower case.
pub fn normalized(statement: &str) -> String {
    let mut out = String::with_capacity(statement.len());
    let mut rest = statement.as_bytes();
    while let Some(&first) = rest.first() {
        let taken = match first {
            byte if byte.is_ascii_whitespace() => {
                push_space(&mut out);
                1
            }
            b'-' if is_comment(rest) => {
                push_space(&mut out);
                rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
            }
            b'/' if rest.starts_with(b"/*") && !rest.starts_with(b"/*!") => {
                push_space(&mut out);
                find(rest, b"*/").map_or(rest.len(), |at| at + 2)
            }
            b'\'' | b'"' => {
                push_literal(&mut out);
                quoted_len(rest, first, true)
            }
            b'`' => {
                let len = quoted_len(rest, first, false);
                out.push_str(&String::from_utf8_lossy(&rest[..len]));
                len
            }
            byte if byte.is_ascii_digit() && !ends_in_word(&out) => {
                push_literal(&mut out);
                rest.iter()
                    .position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'.'))
                    .unwrap_or(rest.len())
            }
            byte if byte.is_ascii() => {
                out.push(byte.to_ascii_lowercase() as char);
                1
            }
            _ => {
                let len = rest.iter().position(u8::is_ascii).unwrap_or(rest.len());
                out.push_str(&String::from_utf8_lossy(&rest[..len]));
                len
            }
        };
        rest = rest.get(taken.max(1)..).unwrap_or_default();
    }
    out.trim().trim_end_matches(';').trim_end().to_owned()
}

/// Stands for a statement in its default database, without its literals.
pub fn fingerprint(database: Option<&str>, statement: &str) -> u64 {
    let text = normalized(statement);
    let parts = [database.unwrap_or_default().as_bytes(), b"\n", text.as_bytes()];
    // FNV-1a: the same in every version of the program.
    parts
        .iter()
        .flat_map(|part| part.iter())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What a statement is for.
pub fn purpose(statement: &str) -> Purpose {
    let text = normalized(statement.get(..256.min(statement.len())).unwrap_or(statement));
    let mut words =
        text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_').filter(|word| !word.is_empty());
    match words.next().unwrap_or_default() {
        "select" | "with" | "update" | "delete" | "table" => Purpose::Reads,
        "insert" | "replace" if text.contains("select") => Purpose::Reads,
        "create" | "alter" | "drop" | "truncate" | "rename" | "analyze" | "optimize" | "vacuum"
        | "reindex" | "cluster" => Purpose::ChangesPlans,
        "use" => Purpose::Uses,
        _ => Purpose::Other,
    }
}

fn push_space(out: &mut String) {
    if !out.is_empty() && !out.ends_with(' ') {
        out.push(' ');
    }
}

/// A list of literals counts as one.
fn push_literal(out: &mut String) {
    let before = out.trim_end();
    if let Some(list) = before.strip_suffix(',')
        && list.trim_end().ends_with('?')
    {
        let len = list.trim_end().len();
        out.truncate(len);
        return;
    }
    out.push('?');
}

fn ends_in_word(out: &str) -> bool {
    out.ends_with(|char: char| char.is_ascii_alphanumeric() || char == '_' || char == '$' || char == '`')
}

fn is_comment(rest: &[u8]) -> bool {
    rest.starts_with(b"--") && rest.get(2).is_none_or(u8::is_ascii_whitespace)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn quoted_len(rest: &[u8], quote: u8, escapes: bool) -> usize {
    let mut at = 1;
    while let Some(&byte) = rest.get(at) {
        if byte == b'\\' && escapes {
            at += 1;
        } else if byte == quote {
            if rest.get(at + 1) != Some(&quote) {
                return at + 1;
            }
            at += 1;
        }
        at += 1;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_comments_and_case_do_not_count() {
        let one = "select a from t where b = 5 and c in ('x', 'it''s') -- why";
        assert_eq!(normalized(one), "select a from t where b = ? and c in (?)");
        assert_eq!(normalized("SELECT  a FROM t\nWHERE b = 77 /* ! */ AND c IN ('z');"), normalized(one));
        assert_ne!(fingerprint(Some("x"), one), fingerprint(Some("y"), one));
        assert_eq!(normalized("select t1.a2, 0x1f from t1"), "select t1.a2, ? from t1");
        assert_eq!(normalized("select 'open"), "select ?");
        assert_eq!(normalized("select `A b` from ß"), "select `A b` from ß");
    }

    #[test]
    fn first_words_tell_the_purpose() {
        assert_eq!(purpose("/* x */ (select 1)"), Purpose::Reads);
        assert_eq!(purpose("insert into t values (1)"), Purpose::Other);
        assert_eq!(purpose("insert into t select * from u"), Purpose::Reads);
        assert_eq!(purpose("ALTER TABLE t ADD k INT"), Purpose::ChangesPlans);
        assert_eq!(purpose("use shop"), Purpose::Uses);
        assert_eq!(purpose("set @a = 1"), Purpose::Other);
    }
}
