//! The texts of `SHOW CREATE VIEW` and `SHOW CREATE DATABASE`, as the servers print them.
//!
//! A view's query is kept with full names. MySQL leaves out the name of the default database; MariaDB does so only if
//! all tables of the view are in it.

use datafusion::sql::sqlparser::tokenizer::Token;
use tanada_innodb::schema::Server;
use tanada_innodb::{Collation, DatabaseDescription, ViewDescription};

use super::command::{keyword, tokens};
use super::create_table::{literal, quoted};
use crate::{Error, ErrorKind, Result};

/// The statement that creates a view. `is_here` says whether the default database is the view's; `left_out` is the
/// database whose name is left out in the query.
///
/// # Errors
/// If the text of the query cannot be taken apart.
pub(super) fn view(
    database: &str,
    name: &str,
    view: &ViewDescription,
    is_here: bool,
    left_out: Option<&str>,
) -> Result<String> {
    let query = match left_out {
        Some(database) => without_database(&view.query, database)?,
        None => view.query.clone(),
    };
    let place = if is_here { String::new() } else { format!("{}.", quoted(database)) };
    let (user, host) = &view.definer;
    // A role has no host; without users there is neither.
    let definer = match (user.is_empty(), host.is_empty()) {
        (true, true) => "``".to_owned(),
        (false, true) => quoted(user),
        _ => format!("{}@{}", quoted(user), quoted(host)),
    };
    let mut text = format!(
        "CREATE ALGORITHM={} DEFINER={definer} SQL SECURITY {} VIEW {place}{}",
        view.algorithm,
        view.security,
        quoted(name)
    );
    if !view.columns.is_empty() {
        let names: Vec<String> = view.columns.iter().map(|name| quoted(name)).collect();
        text.push_str(&format!(" ({})", names.join(",")));
    }
    text.push_str(&format!(" AS {query}"));
    if view.check_option != "NONE" {
        text.push_str(&format!(" WITH {} CHECK OPTION", view.check_option));
    }
    Ok(text)
}

/// A query without the name of `database` before those of its tables.
fn without_database(query: &str, database: &str) -> Result<String> {
    let tokens = tokens(query)?;
    let is_name = |at: usize| matches!(tokens.get(at), Some(Token::Word(_)));
    let is_period = |at: usize| matches!(tokens.get(at), Some(Token::Period));
    let mut text = String::with_capacity(query.len());
    let mut at = 0;
    while at < tokens.len() {
        let is_database = matches!(
            &tokens[at],
            Token::Word(word) if word.quote_style == Some('`') && word.value.replace("``", "`") == database
        );
        let is_qualified = is_database && is_period(at + 1) && is_name(at + 2);
        let is_behind_period = at > 0 && is_period(at - 1);
        if is_qualified && !is_behind_period {
            let is_of_column = is_period(at + 3) && is_name(at + 4);
            if is_of_column || is_table(&tokens[..at]) {
                at += 2;
                continue;
            }
        }
        text.push_str(&tokens[at].to_string());
        at += 1;
    }
    Ok(text)
}

/// The tables of a query with full names, each with its database.
///
/// # Errors
/// If the text cannot be taken apart.
pub(super) fn tables(query: &str) -> Result<Vec<(String, String)>> {
    let tokens = tokens(query)?;
    let mut tables = Vec::new();
    for (at, part) in tokens.windows(3).enumerate() {
        if let [Token::Word(database), Token::Period, Token::Word(table)] = part
            && is_table(&tokens[..at])
        {
            tables.push((database.value.replace("``", "`"), table.value.replace("``", "`")));
        }
    }
    Ok(tables)
}

/// Whether a table's name follows on `before`: FROM or a join, perhaps with parentheses.
fn is_table(before: &[Token]) -> bool {
    let mut words = before.iter().rev().filter(|token| !matches!(token, Token::Whitespace(_)));
    let last = words.find(|token| !matches!(token, Token::LParen));
    last.is_some_and(|token| matches!(keyword(token).as_str(), "FROM" | "JOIN" | "STRAIGHT_JOIN"))
}

/// The statement that creates a database.
///
/// # Errors
/// `Unsupported` if the files do not tell its defaults.
pub(super) fn database(
    name: &str,
    described: &DatabaseDescription,
    server: Server,
    if_not_exists: bool,
) -> Result<String> {
    let Some(collation) = &described.collation else {
        let message = format!("the default collation of database {name} is not in the files");
        return Err(Error::new(ErrorKind::Unsupported, message));
    };
    let is_mysql = server == Server::MySql;
    let is_default = Collation::default_of(&collation.charset, server).is_some_and(|of| of == *collation);
    let condition = if if_not_exists { "/*!32312 IF NOT EXISTS*/ " } else { "" };
    let mut text = format!(
        "CREATE DATABASE {condition}{} /*!40100 DEFAULT CHARACTER SET {}",
        quoted(name),
        collation.charset
    );
    if !is_mysql || !is_default || collation.charset == "utf8mb4" {
        text.push_str(&format!(" COLLATE {}", collation.name));
    }
    text.push_str(" */");
    if is_mysql {
        let letter = if described.is_encrypted == Some(true) { "Y" } else { "N" };
        text.push_str(&format!(" /*!80016 DEFAULT ENCRYPTION='{letter}' */"));
    } else if !described.comment.is_empty() {
        text.push_str(&format!(" COMMENT {}", literal(&described.comment)));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_database_is_left_out_before_tables() {
        let query = "select `c`.`k``2`.`c` AS `c`,count(`c`.`a`) from ((`c`.`k``2` join `c`.`c` on((`c`.`c`.`c` = \
                     `d`.`c`.`a`))) left join `d`.`c` `e` on(`c`.`a` = 'from `c`.`t`')) where exists(select 1 from \
                     `c`.`x`)";
        let expected = "select `k``2`.`c` AS `c`,count(`c`.`a`) from ((`k``2` join `c` on((`c`.`c` = `d`.`c`.`a`))) \
                        left join `d`.`c` `e` on(`c`.`a` = 'from `c`.`t`')) where exists(select 1 from `x`)";
        assert_eq!(without_database(query, "c").unwrap(), expected);
    }

    #[test]
    fn databases_are_printed_as_each_server_does() {
        let of = |collation: &str| DatabaseDescription {
            collation: Collation::with_name(collation),
            comment: "it's".to_owned(),
            is_encrypted: Some(false),
        };
        let printed =
            |collation, server, condition| database("d`e", &of(collation), server, condition).unwrap();
        assert_eq!(
            printed("latin1_swedish_ci", Server::MySql, false),
            "CREATE DATABASE `d``e` /*!40100 DEFAULT CHARACTER SET latin1 */ /*!80016 DEFAULT ENCRYPTION='N' */"
        );
        assert_eq!(
            printed("utf8mb4_bin", Server::MariaDb, true),
            "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `d``e` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE \
             utf8mb4_bin */ COMMENT 'it''s'"
        );
    }
}
