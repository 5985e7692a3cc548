//! Views.

use datafusion::sql::sqlparser::tokenizer::Token;
use tanada_innodb::ViewDescription;
use tanada_innodb::schema::Server;

use super::rows::Row;
use super::tables::named;
use crate::session::command::{keyword, tokens};

/// Aggregates, over which no view is merged.
const AGGREGATES: [&str; 18] = [
    "AVG",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "COUNT",
    "GROUP_CONCAT",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
    "MAX",
    "MIN",
    "STD",
    "STDDEV",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "SUM",
    "VARIANCE",
    "VAR_POP",
    "VAR_SAMP",
];
/// Words of a query that is not merged.
const NOT_MERGED: [&str; 10] =
    ["UNION", "EXCEPT", "INTERSECT", "GROUP", "HAVING", "LIMIT", "DISTINCT", "OVER", "WITH", "PROCEDURE"];

/// The row of a view in VIEWS.
pub(super) fn of_view(database: &str, name: &str, view: &ViewDescription, server: Server) -> Row {
    let is_updatable = match server {
        Server::MySql => view.is_updatable,
        Server::MariaDb => view.algorithm != "TEMPTABLE" && is_mergeable(&view.query),
    };
    let (user, host) = &view.definer;
    named(database, name)
        .with("VIEW_DEFINITION", &view.query)
        .with("CHECK_OPTION", view.check_option)
        .with("IS_UPDATABLE", if is_updatable { "YES" } else { "NO" })
        .with("DEFINER", format!("{user}@{host}"))
        .with("SECURITY_TYPE", view.security)
        .maybe("CHARACTER_SET_CLIENT", view.client_charset.as_ref())
        .maybe("COLLATION_CONNECTION", view.connection_collation.as_ref())
        .with("ALGORITHM", view.algorithm)
}

/// Whether MariaDB can put a view's query in place of the view, and shows it as updatable: one of its columns is a
/// column of a table.
fn is_mergeable(query: &str) -> bool {
    let Ok(tokens) = tokens(query) else { return false };
    let plain: Vec<&Token> = tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let mut depth = 0_i32;
    let mut items: Vec<Vec<&Token>> = vec![Vec::new()];
    let mut is_behind_from = false;
    for (at, token) in plain.iter().enumerate() {
        let word = keyword(token);
        let is_called = matches!(plain.get(at + 1), Some(Token::LParen));
        // What stands in parentheses may be a subquery, which is none of the view's own.
        let is_outside = depth == 0;
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if is_outside
            && (NOT_MERGED.contains(&word.as_str()) || is_called && AGGREGATES.contains(&word.as_str()))
        {
            return false;
        }
        if is_outside && word == "FROM" {
            is_behind_from = true;
        }
        match token {
            _ if is_behind_from || (at == 0 && word == "SELECT") => {}
            Token::Comma if is_outside => items.push(Vec::new()),
            token => items.last_mut().into_iter().for_each(|item| item.push(token)),
        }
    }
    let is_column = |item: &Vec<&Token>| {
        let own = item.split(|token| keyword(token) == "AS").next().unwrap_or_default();
        own.len() >= 3 && own.iter().all(|token| matches!(token, Token::Word(_) | Token::Period))
    };
    is_behind_from && items.iter().any(is_column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_over_columns_are_mergeable() {
        for (query, expected) in [
            ("select `c`.`k`.`a` AS `a`,1 AS `b` from `c`.`k`", true),
            (
                "select `v1`.`n` AS `n`,(select max(`c`.`k`.`b`) from `c`.`k` limit 1) AS `m` from `c`.`v1`",
                true,
            ),
            ("select `c`.`k`.`a` + 1 AS `z` from `c`.`k`", false),
            ("select count(0) AS `n`,`c`.`k`.`a` AS `a` from `c`.`k`", false),
            ("select distinct `c`.`k`.`a` AS `a` from `c`.`k`", false),
            ("select `c`.`k`.`a` AS `a` from `c`.`k` limit 1", false),
            ("select `c`.`k`.`a` AS `a` from `c`.`k` union select 1", false),
            ("select 1 AS `one`", false),
        ] {
            assert_eq!(is_mergeable(query), expected, "{query}");
        }
    }
}
