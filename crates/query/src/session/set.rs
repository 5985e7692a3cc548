//! `SET`: settings of Tanada, variables of the servers and of users, `SET NAMES`, `SET TRANSACTION`.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::command::keyword;
use crate::{Error, ErrorKind, Result};

/// One assignment of a SET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Assignment {
    /// `tanada.name = value`, `datafusion.name = value`
    Setting { key: String, value: String },
    /// `@name = expression`
    User { name: String, expression: String },
    /// `[SESSION] name = expression`; `None` is DEFAULT.
    System { name: String, expression: Option<String> },
    /// `NAMES charset [COLLATE collation]`, `CHARACTER SET charset`
    Names { charset: String, collation: Option<String> },
    /// `TRANSACTION ...`: nothing is written, so all isolation is alike.
    Transaction,
}

/// The assignments of `tokens`, which follow the word SET and have no white space.
///
/// # Errors
/// If it is no SET.
pub(super) fn assignments(tokens: &[&Token]) -> Result<Vec<Assignment>> {
    let words: Vec<String> = tokens.iter().map(|token| keyword(token)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["NAMES", _] => return Ok(vec![Assignment::Names { charset: text(tokens[1]), collation: None }]),
        ["NAMES", _, "COLLATE", _] => {
            let collation = Some(text(tokens[3]));
            return Ok(vec![Assignment::Names { charset: text(tokens[1]), collation }]);
        }
        ["CHARACTER", "SET", _] | ["CHARSET", _] => {
            let charset = tokens.last().map(|token| text(token)).unwrap_or_default();
            return Ok(vec![Assignment::Names { charset, collation: None }]);
        }
        ["TRANSACTION", ..] | ["SESSION" | "LOCAL" | "GLOBAL", "TRANSACTION", ..] => {
            return Ok(vec![Assignment::Transaction]);
        }
        _ => {}
    }
    let mut assignments = Vec::new();
    for part in parts(tokens) {
        assignments.push(assignment(&part)?);
    }
    match assignments.is_empty() {
        true => Err(usage()),
        false => Ok(assignments),
    }
}

/// The tokens between the commas that are in no parentheses.
fn parts<'a>(tokens: &[&'a Token]) -> Vec<Vec<&'a Token>> {
    let mut depth = 0_usize;
    let mut parts: Vec<Vec<&Token>> = vec![Vec::new()];
    for token in tokens {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Comma if depth == 0 => {
                parts.push(Vec::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(token);
        }
    }
    parts
}

fn assignment(tokens: &[&Token]) -> Result<Assignment> {
    let tokens = match tokens {
        [scope, name, ..]
            if matches!(keyword(scope).as_str(), "SESSION" | "LOCAL" | "GLOBAL")
                && !matches!(name, Token::Eq | Token::Assignment | Token::Period) =>
        {
            if keyword(scope) == "GLOBAL" {
                let message =
                    "SET GLOBAL is not run: files of MySQL and MariaDB are only read; use SET SESSION";
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            &tokens[1..]
        }
        tokens => tokens,
    };
    let sign = tokens
        .iter()
        .position(|token| matches!(token, Token::Eq | Token::Assignment) || keyword(token) == "TO");
    let sign = sign.ok_or_else(usage)?;
    let key: String = tokens[..sign].iter().map(|token| token.to_string()).collect();
    let given = &tokens[sign + 1..];
    // What is empty in quotes is a value, which the setting may refuse.
    if key.is_empty() || given.is_empty() {
        return Err(usage());
    }
    let expression: Vec<String> = given.iter().map(|token| token.to_string()).collect();
    let expression = expression.join(" ");
    if key.starts_with('@') && !key.starts_with("@@") {
        return Ok(Assignment::User { name: key, expression });
    }
    let lower = key.to_ascii_lowercase();
    let name = match lower.strip_prefix("@@") {
        Some(name) => name.strip_prefix("session.").or_else(|| name.strip_prefix("local.")).unwrap_or(name),
        None => &lower,
    };
    if name.contains('.') && !name.starts_with("global.") {
        let value = given.iter().map(|token| text(token)).collect();
        return Ok(Assignment::Setting { key: name.to_string(), value });
    }
    if name.starts_with("global.") {
        let message = "SET GLOBAL is not run: files of MySQL and MariaDB are only read; use SET SESSION";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let expression = match given {
        [only] if keyword(only) == "DEFAULT" => None,
        // A bare word is a value: SET autocommit = ON.
        [Token::Word(word)] if word.quote_style.is_none() && !word.value.starts_with('@') => {
            Some(format!("'{}'", word.value))
        }
        _ => Some(expression),
    };
    Ok(Assignment::System { name: name.to_string(), expression })
}

/// A word or what a string says.
fn text(token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => text.clone(),
        Token::Word(word) => word.value.clone(),
        token => token.to_string(),
    }
}

fn usage() -> Error {
    Error::new(ErrorKind::InvalidInput, "write SET tanada.name = value")
}

#[cfg(test)]
mod tests {
    use super::super::command::tokens;
    use super::*;

    fn read(sql: &str) -> Result<Vec<Assignment>> {
        let tokens = tokens(sql)?;
        let plain: Vec<&Token> =
            tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).skip(1).collect();
        assignments(&plain)
    }

    #[test]
    fn assignments_are_of_settings_users_and_the_server() {
        let system = |name: &str, expression: Option<&str>| Assignment::System {
            name: name.to_string(),
            expression: expression.map(str::to_string),
        };
        let user = |name: &str, expression: &str| Assignment::User {
            name: name.to_string(),
            expression: expression.to_string(),
        };
        assert_eq!(
            read("set @a = 1, sql_mode = '', @b := concat(1, 2)").unwrap(),
            [user("@a", "1"), system("sql_mode", Some("''")), user("@b", "concat ( 1 , 2 )")]
        );
        assert_eq!(read("set session autocommit = ON").unwrap(), [system("autocommit", Some("'ON'"))]);
        assert_eq!(read("set @@session.sql_mode = default").unwrap(), [system("sql_mode", None)]);
        assert_eq!(
            read("set names utf8mb4 collate 'utf8mb4_bin'").unwrap(),
            [Assignment::Names {
                charset: "utf8mb4".to_string(),
                collation: Some("utf8mb4_bin".to_string())
            }]
        );
        assert_eq!(
            read("set session transaction isolation level read committed").unwrap(),
            [Assignment::Transaction]
        );
        assert_eq!(
            read("set tanada.io_depth = 8").unwrap(),
            [Assignment::Setting { key: "tanada.io_depth".to_string(), value: "8".to_string() }]
        );
    }

    #[test]
    fn global_variables_are_not_set() {
        assert!(read("set global sql_mode = ''").unwrap_err().to_string().contains("SET GLOBAL"));
    }
}
