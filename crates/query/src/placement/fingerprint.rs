//! Statements that differ in their literals alone are the same statement.

use datafusion::sql::sqlparser::tokenizer::Token;
use tanada_placement::Fingerprint;

/// Stands for the statement in its default database, without its literals and their signs, white space, comments and
/// the case of its words. A list of literals counts as one.
pub(crate) fn fingerprint(tokens: &[Token], database: Option<&str>) -> Fingerprint {
    let mut hash = Fnv::default();
    hash.add(database.unwrap_or_default().to_ascii_lowercase().as_bytes());
    hash.add(b"\n");
    let mut words: Vec<String> = Vec::with_capacity(tokens.len());
    for token in query_of(tokens) {
        let word = match token {
            Token::Whitespace(_) | Token::SemiColon => continue,
            token if is_literal(token) => {
                // A sign before it, unless it takes the difference or the sum of two.
                if matches!(words.as_slice(), [.., before, sign] if is_sign(sign) && begins_operand(before)) {
                    words.pop();
                }
                "?".to_string()
            }
            token => token.to_string().to_ascii_lowercase(),
        };
        let is_more_of_a_list =
            word == "?" && matches!(words.as_slice(), [.., first, comma] if first == "?" && comma == ",");
        if is_more_of_a_list {
            words.pop();
        } else {
            words.push(word);
        }
    }
    for word in words {
        hash.add(word.as_bytes());
        hash.add(b" ");
    }
    Fingerprint(hash.0)
}

/// What follows `EXPLAIN` is the same statement as without.
fn query_of(tokens: &[Token]) -> &[Token] {
    let is_begin = |token: &Token| match token {
        Token::Word(word) => {
            ["SELECT", "WITH", "VALUES"].iter().any(|begin| word.value.eq_ignore_ascii_case(begin))
        }
        Token::LParen => true,
        _ => false,
    };
    let begin = tokens.iter().position(is_begin).unwrap_or(0);
    tokens.get(begin..).unwrap_or(tokens)
}

fn is_literal(token: &Token) -> bool {
    matches!(
        token,
        Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::HexStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
    )
}

fn is_sign(word: &str) -> bool {
    word == "-" || word == "+"
}

/// Whether what follows the word is an operand, so that a sign there is its own.
fn begins_operand(word: &str) -> bool {
    const WORDS: [&str; 12] =
        ["select", "where", "and", "or", "not", "when", "then", "else", "between", "limit", "offset", "by"];
    WORDS.contains(&word)
        || matches!(
            word,
            "(" | "," | "=" | "<" | ">" | "<=" | ">=" | "<>" | "!=" | "+" | "-" | "*" | "/" | "%"
        )
}

/// FNV-1a of 64 bits: the same in every version of the program.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tokens;

    fn of(sql: &str) -> Fingerprint {
        fingerprint(&tokens(sql).unwrap(), Some("shop"))
    }

    #[test]
    fn literals_case_and_white_space_do_not_count() {
        let one = of("select a from t where b = 5 and c in ('x', 'y') -- why");
        assert_eq!(one, of("SELECT  a FROM t\nWHERE b = 77 AND c IN ('z')"));
        assert_ne!(one, of("select a from t where b = 5 and d in ('x')"));
        assert_eq!(one, of("explain select a from t where b = 1 and c in ('x')"));
        assert_ne!(of("select a + 1"), of("select a, 1"));
        assert_eq!(of("select a from t where b > 5"), of("select a from t where b > -5"));
        assert_eq!(of("select a from t where b in (1, 2)"), of("select a from t where b in (1, -2, +7)"));
        assert_ne!(of("select a - 1"), of("select a 1"));
        let tokens = tokens("select a from t").unwrap();
        assert_ne!(fingerprint(&tokens, Some("shop")), fingerprint(&tokens, Some("store")));
    }
}
