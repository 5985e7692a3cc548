//! Which tables the names of a plan stand for.
//!
//! A `query_block` names tables by their aliases. The note that the servers leave beside an `EXPLAIN` has the statement
//! as they rewrote it, all names quoted, views opened: `` `shop`.`orders` `a` ``. Two names with a dot between, with
//! none before and none behind, are a table; a third one right behind is its alias. Columns that are written with two
//! names look the same and do no harm: no plan names them.

use std::collections::HashMap;

/// Tables by the name that a plan has for them.
pub type Aliases = HashMap<String, (String, String)>;

#[derive(Debug, PartialEq)]
enum Token {
    Name(String),
    Dot,
    Other,
}

/// The tables in a rewritten statement.
pub fn aliases(rewritten: &str) -> Aliases {
    let tokens = tokens(rewritten);
    let mut found = Aliases::new();
    let mut unnamed = Vec::new();
    for at in 0..tokens.len() {
        let [Token::Name(database), Token::Dot, Token::Name(table), rest @ ..] = &tokens[at..] else {
            continue;
        };
        let is_longer = at > 0 && tokens[at - 1] == Token::Dot || rest.first() == Some(&Token::Dot);
        if is_longer {
            continue;
        }
        match rest.first() {
            Some(Token::Name(alias)) => {
                found.insert(alias.clone(), (database.clone(), table.clone()));
            }
            _ => unnamed.push((database.clone(), table.clone())),
        }
    }
    for (database, table) in unnamed {
        found.entry(table.clone()).or_insert((database, table));
    }
    found
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '`' => tokens.push(Token::Name(quoted(&mut chars, '`'))),
            '\'' | '"' => {
                quoted(&mut chars, char);
                tokens.push(Token::Other);
            }
            '.' => tokens.push(Token::Dot),
            char if char.is_whitespace() => {}
            _ => tokens.push(Token::Other),
        }
    }
    tokens
}

/// What is in quotes whose first has been read; a doubled quote is one.
fn quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, quote: char) -> String {
    let mut name = String::new();
    while let Some(char) = chars.next() {
        if char == '\\' && quote != '`' {
            chars.next();
        } else if char == quote {
            if chars.peek() != Some(&quote) {
                break;
            }
            chars.next();
            name.push(quote);
        } else {
            name.push(char);
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_and_views_lead_to_their_tables() {
        let note = "select count(0) AS `count(*)` from `shop`.`orders` `a` join `shop`.`orders` where \
                    `shop`.`orders`.`o_customer` = `shop`.`a`.`o_customer` and `shop`.`orders`.`o_text` = 'it''s `x`.`y`'";
        let found = aliases(note);
        let orders = ("shop".to_owned(), "orders".to_owned());
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found.get("a"), found.get("orders")), (Some(&orders), Some(&orders)));
        let update = aliases("update `shop`.`line` `l` set `l`.`line` = 1");
        assert_eq!(update.get("l"), Some(&("shop".to_owned(), "line".to_owned())));
    }
}
