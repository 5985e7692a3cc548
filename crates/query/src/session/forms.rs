//! Forms of statements that the parser does not know, as ones that it knows.
//!
//! `TABLE t ...` is `SELECT * FROM t ...` (MySQL), and `LOCK IN SHARE MODE` behind a query changes no answer here.

use datafusion::sql::sqlparser::tokenizer::Token;
use tanada_innodb::schema::Server;

use super::command::keyword;

/// The words of a lock, at the end of a query.
const LOCK: [&str; 4] = ["LOCK", "IN", "SHARE", "MODE"];

/// The text of a statement with these tokens, if it has such a form.
pub(super) fn respelled(tokens: &[Token], server: Server) -> Option<String> {
    let is_word = |(_, token): &(usize, &Token)| !matches!(token, Token::Whitespace(_) | Token::SemiColon);
    let words: Vec<usize> = tokens.iter().enumerate().filter(is_word).map(|(no, _)| no).collect();
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| keyword(token) == word);
    let first = *words.first()?;
    let is_table = server == Server::MySql && is(first, "TABLE");
    let end = words
        .len()
        .checked_sub(LOCK.len())
        .filter(|begin| words[*begin..].iter().zip(LOCK).all(|(at, word)| is(*at, word)));
    if !is_table && end.is_none() {
        return None;
    }
    let end = end.and_then(|begin| words.get(begin)).copied().unwrap_or(tokens.len());
    let mut text = String::new();
    for (no, token) in tokens.iter().enumerate().take(end) {
        match is_table && no == first {
            true => text.push_str("SELECT * FROM"),
            false => text.push_str(&token.to_string()),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::super::command::tokens;
    use super::*;

    #[test]
    fn tables_and_locks_are_respelled() {
        let of = |sql: &str, server| respelled(&tokens(sql).unwrap(), server);
        assert_eq!(of("table t limit 1", Server::MySql).as_deref(), Some("SELECT * FROM t limit 1"));
        assert_eq!(of("table t", Server::MariaDb), None);
        let locked = of("select 'lock in share mode' from t lock in share mode;", Server::MariaDb);
        assert_eq!(locked.as_deref(), Some("select 'lock in share mode' from t "));
        assert_eq!(of("select 1", Server::MySql), None);
    }
}
