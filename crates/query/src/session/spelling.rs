//! Names of columns and aliases are the same in upper and lower case, as in MySQL; DataFusion compares them exactly.
//!
//! So names in a statement that differ from a known name in case only are respelled before it is planned. Known are the columns of the
//! tables in the statement, and its aliases (spelled as where they are introduced; that is also how the result's header shows them).

use std::collections::HashMap;

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Word};

/// Respells `tokens`; `None` if nothing had to be.
pub(super) fn respell<'a>(tokens: &[Token], columns: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut known: HashMap<String, String> = HashMap::new();
    for column in columns {
        known.entry(column.to_lowercase()).or_insert_with(|| column.to_string());
    }
    let words: Vec<(usize, &Word)> = tokens
        .iter()
        .enumerate()
        .filter_map(|(no, token)| if let Token::Word(word) = token { Some((no, word)) } else { None })
        .collect();
    for pair in words.windows(2) {
        if pair[0].1.keyword == Keyword::AS && pair[0].1.quote_style.is_none() {
            known.entry(pair[1].1.value.to_lowercase()).or_insert_with(|| pair[1].1.value.clone());
        }
    }
    let mut respelled = tokens.to_vec();
    let mut changed = false;
    for (no, word) in words {
        // INFORMATION_SCHEMA.TABLES: both are lower case there.
        let lower = word.value.to_lowercase();
        let of_schema =
            || no >= 2 && tokens[no - 1] == Token::Period && is_information_schema(&tokens[no - 2]);
        let spelling =
            if lower == INFORMATION_SCHEMA || of_schema() { Some(&lower) } else { known.get(&lower) };
        let function = matches!(tokens.get(no + 1), Some(Token::LParen));
        if let Some(spelling) = spelling.filter(|spelling| **spelling != word.value && !function) {
            respelled[no] = Token::Word(Word { value: spelling.clone(), ..word.clone() });
            changed = true;
        }
    }
    changed.then(|| respelled.iter().map(ToString::to_string).collect())
}

/// The schema that describes the others.
pub(super) const INFORMATION_SCHEMA: &str = "information_schema";

fn is_information_schema(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case(INFORMATION_SCHEMA))
}

#[cfg(test)]
mod tests {
    use super::super::command::tokens;
    use super::*;

    fn respelled(sql: &str, columns: &[&str]) -> Option<String> {
        respell(&tokens(sql).unwrap(), columns.iter().copied())
    }

    #[test]
    fn columns_get_the_spelling_of_the_table() {
        let sql = "SELECT ID, t.camelcase, 'ID' FROM t WHERE `Id` = 1";
        let expected = "SELECT id, t.camelCase, 'ID' FROM t WHERE `id` = 1";
        assert_eq!(respelled(sql, &["id", "camelCase"]).as_deref(), Some(expected));
        assert_eq!(respelled("select id from t", &["id"]), None);
    }

    #[test]
    fn aliases_keep_their_first_spelling() {
        let sql = "select sum(a) as Total from t order by total";
        assert_eq!(respelled(sql, &["a"]).as_deref(), Some("select sum(a) as Total from t order by Total"));
    }

    #[test]
    fn functions_are_no_columns() {
        assert_eq!(respelled("select COUNT(*) from t", &["count"]), None);
    }

    #[test]
    fn the_information_schema_is_lower_case() {
        let sql = "select * from INFORMATION_SCHEMA.TABLES";
        assert_eq!(respelled(sql, &[]).as_deref(), Some("select * from information_schema.tables"));
    }
}
