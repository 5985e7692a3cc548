//! What kind of statement a text is: the few that the session answers itself, and queries.

use datafusion::sql::sqlparser::dialect::MySqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use super::prepared::{self, Named};
use super::set::{Assignment, assignments};
use crate::{Error, ErrorKind, Result};

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// `USE db`
    Use(String),
    /// `SET ...`
    Set(Vec<Assignment>),
    /// `SHOW DATABASES [LIKE pattern]`
    ShowDatabases { pattern: Option<String> },
    /// `SHOW [FULL] TABLES [FROM db] [LIKE pattern]`
    ShowTables { database: Option<String>, full: bool, pattern: Option<String> },
    /// `SHOW [FULL] COLUMNS FROM t [LIKE pattern]`, `DESCRIBE t`
    ShowColumns { table: TableName, full: bool, pattern: Option<String> },
    /// `SHOW INDEX FROM t`
    ShowIndex(TableName),
    /// `SHOW CREATE TABLE t`, `SHOW CREATE VIEW v`
    ShowCreate { table: TableName, view: bool },
    /// `SHOW WARNINGS`, and with `counted` `SHOW COUNT(*) WARNINGS`.
    ShowWarnings { counted: bool },
    /// `SHOW TABLE STATUS [FROM db] [LIKE pattern]`
    ShowTableStatus { database: Option<String>, pattern: Option<String> },
    /// `SHOW CREATE DATABASE [IF NOT EXISTS] db`
    ShowCreateDatabase { database: String, if_not_exists: bool },
    /// `SHOW CHARACTER SET`, `SHOW COLLATION`, `SHOW ENGINES`, the first two with `[LIKE pattern]`
    ShowOfServer { what: OfServer, pattern: Option<String> },
    /// `SHOW ... WHERE condition`, of any of the others; the condition as text.
    Chosen { shown: Box<Command>, condition: String },
    /// `SHOW VARIABLES [LIKE pattern]`
    ShowVariables { pattern: Option<String> },
    /// `COPY (SELECT ...) TO 'file'`
    Copy,
    /// `CREATE [OR REPLACE] EXTERNAL TABLE ...`
    CreateFiles,
    /// `DROP TABLE [IF EXISTS] t, ...`
    Drop { tables: Vec<TableName>, if_exists: bool },
    /// Begin and end of transactions, which change nothing where all files stay as they are.
    Transaction,
    /// `PREPARE`, `EXECUTE`, `DEALLOCATE PREPARE`, `DO`
    Named(Named),
    /// Whatever DataFusion plans.
    Query,
}

/// What a server has as it is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfServer {
    CharacterSets,
    Collations,
    Engines,
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
    if let Some((shown, condition)) = condition(tokens) {
        return Ok(Command::Chosen { shown: Box::new(recognise(shown)?), condition });
    }
    let plain: Vec<&Token> =
        tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_) | Token::SemiColon)).collect();
    let words: Vec<String> = plain.iter().map(|token| keyword(token)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let Some(named) = prepared::read(&plain)? {
        return Ok(Command::Named(named));
    }
    match words.as_slice() {
        ["USE", _] => Ok(Command::Use(name(plain[1])?)),
        ["SET", ..] => Ok(Command::Set(assignments(&plain[1..])?)),
        ["SHOW", "DATABASES" | "SCHEMAS", ..] => Ok(Command::ShowDatabases { pattern: like(&plain[2..])? }),
        ["SHOW", "FULL", "TABLES", ..] => show_tables(&plain[3..], true),
        ["SHOW", "TABLES", ..] => show_tables(&plain[2..], false),
        ["SHOW", "COLUMNS" | "FIELDS", "FROM" | "IN", ..] => show_columns(&plain[3..], false),
        ["SHOW", "FULL", "COLUMNS" | "FIELDS", "FROM" | "IN", ..] => show_columns(&plain[4..], true),
        ["SHOW", "WARNINGS" | "ERRORS", ..] => Ok(Command::ShowWarnings { counted: false }),
        ["SHOW", "COUNT", "(", "*", ")", "WARNINGS"] => Ok(Command::ShowWarnings { counted: true }),
        ["SHOW", "INDEX" | "INDEXES" | "KEYS", "FROM" | "IN", ..] => {
            Ok(Command::ShowIndex(table_name(&plain[3..])?))
        }
        ["SHOW", "TABLE", "STATUS", ..] => {
            let (database, rest) = from_database(&plain[3..])?;
            Ok(Command::ShowTableStatus { database, pattern: like(rest)? })
        }
        ["SHOW", "CHARACTER", "SET", ..] => of_server(OfServer::CharacterSets, &plain[3..]),
        ["SHOW", "CHARSET", ..] => of_server(OfServer::CharacterSets, &plain[2..]),
        ["SHOW", "COLLATION", ..] => of_server(OfServer::Collations, &plain[2..]),
        ["SHOW", "ENGINES"] | ["SHOW", "STORAGE", "ENGINES"] => of_server(OfServer::Engines, &[]),
        ["SHOW", "CREATE", "DATABASE" | "SCHEMA", "IF", "NOT", "EXISTS", _] => {
            Ok(Command::ShowCreateDatabase { database: name(plain[6])?, if_not_exists: true })
        }
        ["SHOW", "CREATE", "DATABASE" | "SCHEMA", _] => {
            Ok(Command::ShowCreateDatabase { database: name(plain[3])?, if_not_exists: false })
        }
        ["SHOW", "CREATE", kind @ ("TABLE" | "VIEW"), ..] => {
            Ok(Command::ShowCreate { table: table_name(&plain[3..])?, view: *kind == "VIEW" })
        }
        ["SHOW", "VARIABLES", ..] => variables(&plain[2..]),
        ["SHOW", "SESSION" | "LOCAL" | "GLOBAL", "VARIABLES", ..] => variables(&plain[3..]),
        ["DESCRIBE" | "DESC" | "EXPLAIN", _] | ["DESCRIBE" | "DESC" | "EXPLAIN", _, ".", _] => {
            Ok(Command::ShowColumns { table: table_name(&plain[1..])?, full: false, pattern: None })
        }
        ["DESCRIBE" | "DESC", table, _]
            if !matches!(*table, "SELECT" | "WITH" | "TABLE" | "VALUES" | "ANALYZE" | "VERBOSE" | "(") =>
        {
            let pattern = match plain[2] {
                Token::SingleQuotedString(pattern) | Token::DoubleQuotedString(pattern) => pattern.clone(),
                column => name(column)?,
            };
            Ok(Command::ShowColumns { table: table_name(&plain[1..2])?, full: false, pattern: Some(pattern) })
        }
        // What Tanada has beside the servers: SHOW tanada.name, SHOW ALL.
        ["SHOW", "ALL"] | ["SHOW", "TANADA" | "DATAFUSION", ..] => Ok(Command::Query),
        ["SHOW", rest @ ..] => Err(not_shown(rest)),
        ["SELECT" | "WITH" | "VALUES" | "TABLE" | "EXPLAIN" | "DESCRIBE" | "DESC" | "(", ..] => {
            Ok(Command::Query)
        }
        ["BEGIN" | "COMMIT" | "ROLLBACK"]
        | ["BEGIN" | "COMMIT" | "ROLLBACK", "WORK"]
        | ["START", "TRANSACTION", ..] => Ok(Command::Transaction),
        ["COPY", ..] => Ok(Command::Copy),
        ["CREATE", "EXTERNAL", ..] | ["CREATE", "OR", "REPLACE", "EXTERNAL", ..] => Ok(Command::CreateFiles),
        ["DROP", "TABLE", "IF", "EXISTS", ..] => {
            Ok(Command::Drop { tables: table_names(&plain[4..])?, if_exists: true })
        }
        ["DROP", "TABLE", ..] => Ok(Command::Drop { tables: table_names(&plain[2..])?, if_exists: false }),
        [] => Err(Error::new(ErrorKind::InvalidInput, "there is no statement")),
        [first, ..] => Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "{first} is not run: files of MySQL and MariaDB are only read; use SELECT, SHOW, DESCRIBE, EXPLAIN, USE or SET"
            ),
        )),
    }
}

/// Why a SHOW is refused.
fn not_shown(words: &[&str]) -> Error {
    let message = match words {
        ["TRIGGERS" | "EVENTS" | "FULL", ..]
        | ["PROCEDURE" | "FUNCTION" | "PACKAGE", ..]
        | ["CREATE", "TRIGGER" | "EVENT" | "PROCEDURE" | "FUNCTION" | "PACKAGE", ..] => {
            format!("SHOW {} is not run: triggers, events and routines are not read", words.join(" "))
        }
        ["STATUS" | "PROCESSLIST" | "GRANTS" | "OPEN" | "PLUGINS" | "PRIVILEGES" | "ENGINE", ..]
        | ["GLOBAL" | "SESSION" | "LOCAL", "STATUS", ..] => {
            format!("SHOW {} is not run: it is about a server that runs, not about files", words[0])
        }
        _ => format!(
            "SHOW {} is not run; use DATABASES, TABLES, TABLE STATUS, COLUMNS, INDEX, CREATE TABLE, CREATE VIEW, \
             CREATE DATABASE, CHARACTER SET, COLLATION, ENGINES, VARIABLES or WARNINGS",
            words.first().copied().unwrap_or_default()
        ),
    };
    Error::new(ErrorKind::Unsupported, message)
}

/// A SHOW without its WHERE, and the text of the condition.
fn condition(tokens: &[Token]) -> Option<(&[Token], String)> {
    let first = tokens.iter().find(|token| !matches!(token, Token::Whitespace(_)))?;
    if keyword(first) != "SHOW" {
        return None;
    }
    let at = tokens.iter().position(|token| keyword(token) == "WHERE")?;
    let behind = tokens[at + 1..].iter().filter(|token| !matches!(token, Token::SemiColon));
    let condition: String = behind.map(ToString::to_string).collect();
    (!condition.trim().is_empty()).then(|| (&tokens[..at], condition))
}

/// The token in upper case if it is a bare word, else as it is.
pub(super) fn keyword(token: &Token) -> String {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
        token => token.to_string(),
    }
}

fn name(token: &Token) -> Result<String> {
    match token {
        Token::Word(word) if word.quote_style == Some('`') => Ok(word.value.replace("``", "`")),
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

/// `t, db.t`
fn table_names(tokens: &[&Token]) -> Result<Vec<TableName>> {
    tokens.split(|token| matches!(token, Token::Comma)).map(table_name).collect()
}

/// `[FROM db]`, and what follows.
fn from_database<'a, 'b>(tokens: &'a [&'b Token]) -> Result<(Option<String>, &'a [&'b Token])> {
    match tokens {
        [from, database, rest @ ..] if matches!(keyword(from).as_str(), "FROM" | "IN") => {
            Ok((Some(name(database)?), rest))
        }
        rest => Ok((None, rest)),
    }
}

/// `[LIKE pattern]`
fn of_server(what: OfServer, tokens: &[&Token]) -> Result<Command> {
    Ok(Command::ShowOfServer { what, pattern: like(tokens)? })
}

/// `[FROM db] [LIKE pattern]`
fn show_tables(tokens: &[&Token], full: bool) -> Result<Command> {
    let (database, rest) = from_database(tokens)?;
    Ok(Command::ShowTables { database, full, pattern: like(rest)? })
}

/// `t [LIKE pattern]`
fn show_columns(tokens: &[&Token], full: bool) -> Result<Command> {
    let (name, rest) = until_like(tokens);
    Ok(Command::ShowColumns { table: table_name(name)?, full, pattern: like(rest)? })
}

/// What stands before LIKE, and LIKE with its pattern.
fn until_like<'a, 'b>(tokens: &'a [&'b Token]) -> (&'a [&'b Token], &'a [&'b Token]) {
    let at = tokens.iter().position(|token| keyword(token) == "LIKE");
    tokens.split_at(at.unwrap_or(tokens.len()))
}

/// `[LIKE pattern]`
fn like(tokens: &[&Token]) -> Result<Option<String>> {
    match tokens {
        [] => Ok(None),
        [like, Token::SingleQuotedString(pattern) | Token::DoubleQuotedString(pattern)]
            if keyword(like) == "LIKE" =>
        {
            Ok(Some(pattern.clone()))
        }
        _ => Err(Error::new(ErrorKind::InvalidInput, "only LIKE 'pattern' may stand here")),
    }
}

/// `[LIKE pattern]`
fn variables(tokens: &[&Token]) -> Result<Command> {
    match like(tokens) {
        Ok(pattern) => Ok(Command::ShowVariables { pattern }),
        Err(_) => {
            let message = "write SHOW VARIABLES or SHOW VARIABLES LIKE 'pattern'";
            Err(Error::new(ErrorKind::InvalidInput, message))
        }
    }
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
            ("show databases;", Command::ShowDatabases { pattern: None }),
            (
                "SHOW FULL TABLES FROM x LIKE 'a%'",
                Command::ShowTables {
                    database: Some("x".to_string()),
                    full: true,
                    pattern: Some("a%".to_string()),
                },
            ),
            (
                "describe a.b",
                Command::ShowColumns { table: table(Some("a"), "b"), full: false, pattern: None },
            ),
            (
                "show full fields from t like 'x'",
                Command::ShowColumns { table: table(None, "t"), full: true, pattern: Some("x".to_string()) },
            ),
            ("begin", Command::Transaction),
            ("start transaction read only", Command::Transaction),
            (
                "show columns from t in d",
                Command::ShowColumns { table: table(Some("d"), "t"), full: false, pattern: None },
            ),
            ("show index from `t`", Command::ShowIndex(table(None, "t"))),
            ("show create table `a`.`b`", Command::ShowCreate { table: table(Some("a"), "b"), view: false }),
            ("use `a``b`", Command::Use("a`b".to_string())),
            ("show create view v", Command::ShowCreate { table: table(None, "v"), view: true }),
            ("show variables", Command::ShowVariables { pattern: None }),
            (
                "show table status from d like 'x'",
                Command::ShowTableStatus { database: Some("d".to_string()), pattern: Some("x".to_string()) },
            ),
            (
                "SHOW CHARSET WHERE maxlen > 1 and `Charset` = 'where';",
                Command::Chosen {
                    shown: Box::new(Command::ShowOfServer { what: OfServer::CharacterSets, pattern: None }),
                    condition: " maxlen > 1 and `Charset` = 'where'".to_string(),
                },
            ),
            (
                "show create schema if not exists `a b`",
                Command::ShowCreateDatabase { database: "a b".to_string(), if_not_exists: true },
            ),
            (
                "show session variables like 'tanada.%';",
                Command::ShowVariables { pattern: Some("tanada.%".to_string()) },
            ),
            ("show tanada.placement", Command::Query),
            ("show count(*) warnings", Command::ShowWarnings { counted: true }),
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
        Command::Set(vec![Assignment::Setting { key: key.to_string(), value: value.to_string() }])
    }

    #[test]
    fn writes_are_refused() {
        for sql in ["insert into t values (1)", "create table t (a int)", "replace into t values (1)"] {
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
