//! What kind of statement a text is: the few that the session answers itself, and queries.

use datafusion::sql::sqlparser::dialect::MySqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::{Error, ErrorKind, Result};

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// `USE db`
    Use(String),
    /// `SET key = value`
    Set { key: String, value: String },
    /// `SHOW DATABASES`
    ShowDatabases,
    /// `SHOW TABLES [FROM db]`
    ShowTables { database: Option<String> },
    /// `SHOW COLUMNS FROM t`, `DESCRIBE t`
    ShowColumns(TableName),
    /// `SHOW INDEX FROM t`
    ShowIndex(TableName),
    /// `SHOW VARIABLES [LIKE pattern]`
    ShowVariables { pattern: Option<String> },
    /// Whatever DataFusion plans.
    Query,
}

/// A table, perhaps with its database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableName {
    pub database: Option<String>,
    pub table: String,
}

/// The tokens of a text with their white space; joined again they are the text.
pub(crate) fn tokens(sql: &str) -> Result<Vec<Token>> {
    let dialect = MySqlDialect {};
    let tokens = Tokenizer::new(&dialect, sql).with_unescape(false).tokenize();
    tokens.map_err(|error| Error::new(ErrorKind::InvalidInput, error.to_string()))
}

/// Tells what `tokens` ask for.
///
/// # Errors
/// `Unsupported` for statements that would change something.
pub(super) fn recognise(tokens: &[Token]) -> Result<Command> {
    let plain: Vec<&Token> =
        tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_) | Token::SemiColon)).collect();
    let words: Vec<String> = plain.iter().map(|token| keyword(token)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["USE", _] => Ok(Command::Use(name(plain[1])?)),
        ["SET", ..] => set(&plain[1..]),
        ["SHOW", "DATABASES" | "SCHEMAS"] => Ok(Command::ShowDatabases),
        ["SHOW", "TABLES"] | ["SHOW", "FULL", "TABLES"] => Ok(Command::ShowTables { database: None }),
        ["SHOW", "TABLES", "FROM" | "IN", _] => Ok(Command::ShowTables { database: Some(name(plain[3])?) }),
        ["SHOW", "COLUMNS" | "FIELDS", "FROM" | "IN", ..] => {
            Ok(Command::ShowColumns(table_name(&plain[3..])?))
        }
        ["SHOW", "INDEX" | "INDEXES" | "KEYS", "FROM" | "IN", ..] => {
            Ok(Command::ShowIndex(table_name(&plain[3..])?))
        }
        ["SHOW", "VARIABLES", ..] => variables(&plain[2..]),
        ["SHOW", "SESSION" | "LOCAL" | "GLOBAL", "VARIABLES", ..] => variables(&plain[3..]),
        ["DESCRIBE" | "DESC" | "EXPLAIN", _] | ["DESCRIBE" | "DESC" | "EXPLAIN", _, ".", _] => {
            Ok(Command::ShowColumns(table_name(&plain[1..])?))
        }
        ["SELECT" | "WITH" | "VALUES" | "TABLE" | "EXPLAIN" | "DESCRIBE" | "DESC" | "SHOW" | "(", ..] => {
            Ok(Command::Query)
        }
        [] => Err(Error::new(ErrorKind::InvalidInput, "there is no statement")),
        [first, ..] => Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "{first} is not run: files of MySQL and MariaDB are only read; use SELECT, SHOW, DESCRIBE, EXPLAIN, USE or SET"
            ),
        )),
    }
}

/// The token in upper case if it is a bare word, else as it is.
fn keyword(token: &Token) -> String {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
        token => token.to_string(),
    }
}

fn name(token: &Token) -> Result<String> {
    match token {
        Token::Word(word) => Ok(word.value.clone()),
        other => Err(Error::new(ErrorKind::InvalidInput, format!("'{other}' is no name"))),
    }
}

/// `t`, `db.t`, `t FROM db`
fn table_name(tokens: &[&Token]) -> Result<TableName> {
    match tokens {
        [table] => Ok(TableName { database: None, table: name(table)? }),
        [database, Token::Period, table] => {
            Ok(TableName { database: Some(name(database)?), table: name(table)? })
        }
        [table, from, database] if matches!(keyword(from).as_str(), "FROM" | "IN") => {
            Ok(TableName { database: Some(name(database)?), table: name(table)? })
        }
        _ => Err(Error::new(ErrorKind::InvalidInput, "name one table, as t, db.t or t FROM db")),
    }
}

/// `[LIKE pattern]`
fn variables(tokens: &[&Token]) -> Result<Command> {
    let pattern = match tokens {
        [] => None,
        [like, Token::SingleQuotedString(pattern) | Token::DoubleQuotedString(pattern)]
            if keyword(like) == "LIKE" =>
        {
            Some(pattern.clone())
        }
        _ => {
            let message = "write SHOW VARIABLES or SHOW VARIABLES LIKE 'pattern'";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
    };
    Ok(Command::ShowVariables { pattern })
}

/// `[SESSION] key = value` or `key TO value`; dots in the key, `@@` or `@@session.` in front of it.
fn set(tokens: &[&Token]) -> Result<Command> {
    let usage = || Error::new(ErrorKind::InvalidInput, "write SET tanada.name = value");
    let tokens = match tokens {
        [first, rest @ ..] if keyword(first) == "SESSION" => rest,
        tokens => tokens,
    };
    let sign = tokens
        .iter()
        .position(|token| matches!(token, Token::Eq | Token::Assignment) || keyword(token) == "TO");
    let sign = sign.ok_or_else(usage)?;
    let key: String = tokens[..sign].iter().map(|token| token.to_string()).collect();
    let key = key.to_ascii_lowercase();
    let key = match key.strip_prefix("@@") {
        Some(name) => name.strip_prefix("session.").or_else(|| name.strip_prefix("local.")).unwrap_or(name),
        None => &key,
    };
    let given = &tokens[sign + 1..];
    let value: String = given
        .iter()
        .map(|token| match token {
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => text.clone(),
            token => token.to_string(),
        })
        .collect();
    // What is empty in quotes is a value, which the setting may refuse.
    if key.is_empty() || given.is_empty() {
        return Err(usage());
    }
    Ok(Command::Set { key: key.to_owned(), value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recognised(sql: &str) -> Result<Command> {
        recognise(&tokens(sql)?)
    }

    #[test]
    fn commands() {
        let table = |database: Option<&str>, table: &str| TableName {
            database: database.map(str::to_string),
            table: table.to_string(),
        };
        let cases = [
            ("use `my db`", Command::Use("my db".to_string())),
            ("show databases;", Command::ShowDatabases),
            ("SHOW TABLES FROM x", Command::ShowTables { database: Some("x".to_string()) }),
            ("describe a.b", Command::ShowColumns(table(Some("a"), "b"))),
            ("show columns from t in d", Command::ShowColumns(table(Some("d"), "t"))),
            ("show index from `t`", Command::ShowIndex(table(None, "t"))),
            ("show variables", Command::ShowVariables { pattern: None }),
            (
                "show session variables like 'tanada.%';",
                Command::ShowVariables { pattern: Some("tanada.%".to_string()) },
            ),
            ("show tanada.placement", Command::Query),
            ("set Tanada.execution = 'in_order'", set_to("tanada.execution", "in_order")),
            ("set @@tanada.execution = 'in_order'", set_to("tanada.execution", "in_order")),
            ("set @@Session.tanada.io_depth := 8", set_to("tanada.io_depth", "8")),
            ("set session tanada.io_depth = 64", set_to("tanada.io_depth", "64")),
            ("set tanada.placement = ''", set_to("tanada.placement", "")),
            ("explain select 1", Command::Query),
            ("/* first */ select 1", Command::Query),
        ];
        for (sql, command) in cases {
            assert_eq!(recognised(sql).unwrap(), command, "{sql}");
        }
    }

    fn set_to(key: &str, value: &str) -> Command {
        Command::Set { key: key.to_string(), value: value.to_string() }
    }

    #[test]
    fn writes_are_refused() {
        for sql in [
            "insert into t values (1)",
            "drop table t",
            "create table t (a int)",
            "replace into t values (1)",
        ] {
            let error = recognised(sql).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{sql}");
            assert!(error.to_string().contains("only read"), "{error}");
        }
    }

    #[test]
    fn tokens_are_the_text() {
        let sql = "select 'it''s \\'', \"q\" /* c */ -- d\n from `a``b` where x = X'4F' and y <=> 1.50e3";
        let joined: String = tokens(sql).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(joined, sql);
    }
}
