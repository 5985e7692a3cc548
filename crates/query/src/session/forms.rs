//! Forms of statements that the parser does not know, as ones that it knows.
//!
//! `TABLE t ...` is `SELECT * FROM t ...` (MySQL), `0b101` is `b'101'`, `TRIM(LEADING FROM a)` takes blanks away, and
//! `LOCK IN SHARE MODE` behind a query changes no answer here.

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
    let respelled = |no: usize| token_respelled(tokens, &words, no);
    if !is_table && end.is_none() && (0..tokens.len()).all(|no| respelled(no).is_none()) {
        return None;
    }
    let end = end.and_then(|begin| words.get(begin)).copied().unwrap_or(tokens.len());
    let mut text = String::new();
    for (no, token) in tokens.iter().enumerate().take(end) {
        match respelled(no) {
            _ if is_table && no == first => text.push_str("SELECT * FROM"),
            Some(other) => text.push_str(&other),
            None => text.push_str(&token.to_string()),
        }
    }
    Some(text)
}

/// What stands in the place of one token.
fn token_respelled(tokens: &[Token], words: &[usize], no: usize) -> Option<String> {
    match &tokens[no] {
        // The parser takes it for a name that begins with a digit.
        Token::Word(word) if word.quote_style.is_none() && word.value.starts_with("0b") => {
            let bits = &word.value[2..];
            let is_bits = !bits.is_empty() && bits.bytes().all(|bit| matches!(bit, b'0' | b'1'));
            is_bits.then(|| format!("b'{bits}'"))
        }
        token if matches!(keyword(token).as_str(), "LEADING" | "TRAILING" | "BOTH") => {
            let at = words.iter().position(|word| *word == no)?;
            let word = |at: Option<usize>| at.and_then(|at| words.get(at)).map(|at| &tokens[*at]);
            let is_first = word(at.checked_sub(1)) == Some(&Token::LParen)
                && word(at.checked_sub(2)).is_some_and(|token| keyword(token) == "TRIM");
            let is_bare = word(Some(at + 1)).is_some_and(|token| keyword(token) == "FROM");
            (is_first && is_bare).then(|| format!("{token} ' '"))
        }
        _ => None,
    }
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
        let bits = of("select 0b11 + 0, b0, 10, trim( leading from a)", Server::MySql);
        assert_eq!(bits.as_deref(), Some("select b'11' + 0, b0, 10, trim( leading ' ' from a)"));
    }
}
