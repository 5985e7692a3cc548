//! Statements by name (`PREPARE`, `EXECUTE`, `DEALLOCATE PREPARE`), `DO`, and `SELECT ... INTO @variable`.

use datafusion::sql::sqlparser::ast::{Expr, UnaryOperator, Value};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::Session;
use super::command::{self, keyword};
use super::result::QueryResult;
use crate::{Error, ErrorKind, Result};

/// A statement about a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Named {
    /// `PREPARE name FROM 'text'`, or the text of a variable.
    Prepare { name: String, text: Source },
    /// `EXECUTE name [USING @variable, ...]`
    Execute { name: String, variables: Vec<String> },
    /// `DEALLOCATE PREPARE name`, `DROP PREPARE name`
    Deallocate(String),
    /// `DO expressions`
    Do(String),
}

/// Where the text of a statement comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    Literal(String),
    Variable(String),
}

/// Reads a statement about a statement; `None` if it is another one.
///
/// # Errors
/// `InvalidInput` if it cannot be read.
pub(super) fn read(plain: &[&Token]) -> Result<Option<Named>> {
    let words: Vec<String> = plain.iter().map(|token| keyword(token)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let name = |at: usize| match plain.get(at) {
        Some(Token::Word(word)) => Ok(word.value.to_ascii_lowercase()),
        _ => Err(Error::new(ErrorKind::InvalidInput, "a prepared statement has a name")),
    };
    Ok(Some(match words.as_slice() {
        ["PREPARE", _, "FROM", _] => {
            let text = match plain[3] {
                Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                    Source::Literal(unescaped(text))
                }
                Token::Word(word) if is_variable(&word.value) => Source::Variable(word.value.clone()),
                other => {
                    let message = format!("'{other}' is no text of a statement");
                    return Err(Error::new(ErrorKind::InvalidInput, message));
                }
            };
            Named::Prepare { name: name(1)?, text }
        }
        ["EXECUTE", _] => Named::Execute { name: name(1)?, variables: Vec::new() },
        ["EXECUTE", _, "USING", ..] => {
            let mut variables = Vec::new();
            for (no, token) in plain[3..].iter().enumerate() {
                match token {
                    Token::Word(word) if no % 2 == 0 && is_variable(&word.value) => {
                        variables.push(word.value.clone());
                    }
                    Token::Comma if no % 2 == 1 => {}
                    _ => return Err(Error::new(ErrorKind::InvalidInput, "EXECUTE takes user variables")),
                }
            }
            Named::Execute { name: name(1)?, variables }
        }
        ["DEALLOCATE" | "DROP", "PREPARE", _] => Named::Deallocate(name(2)?),
        ["DO", _, ..] => {
            let parts: Vec<String> = plain[1..].iter().map(ToString::to_string).collect();
            Named::Do(parts.join(" "))
        }
        _ => return Ok(None),
    }))
}

fn is_variable(word: &str) -> bool {
    word.starts_with('@') && !word.starts_with("@@")
}

/// The text of a string as the tokens have it, with its escapes.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('0') => out.push('\0'),
                Some(other @ ('%' | '_')) => out.extend(['\\', other]),
                Some(other) => out.push(other),
                None => {}
            },
            '\'' if letters.peek() == Some(&'\'') => {
                letters.next();
                out.push('\'');
            }
            '"' if letters.peek() == Some(&'"') => {
                letters.next();
                out.push('"');
            }
            other => out.push(other),
        }
    }
    out
}

/// A SELECT without its `INTO @a, @b`, and the variables; `None` if it has none.
pub(super) fn into_variables(tokens: &[Token]) -> Option<(String, Vec<String>)> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            token if depth == 0 && keyword(token) == "INTO" => {
                let mut variables = Vec::new();
                let mut end = at + 1;
                let mut wants_name = true;
                for (no, token) in tokens.iter().enumerate().skip(at + 1) {
                    match token {
                        Token::Whitespace(_) => continue,
                        Token::Word(word) if wants_name && is_variable(&word.value) => {
                            variables.push(word.value.clone());
                            wants_name = false;
                        }
                        Token::Comma if !wants_name => wants_name = true,
                        _ => break,
                    }
                    end = no + 1;
                }
                if variables.is_empty() || wants_name {
                    return None;
                }
                let rest = tokens[..at].iter().chain(&tokens[end..]);
                return Some((rest.map(ToString::to_string).collect(), variables));
            }
            _ => {}
        }
    }
    None
}

impl Session {
    /// Carries out a statement about a statement; the result is that of the statement that it executes.
    pub(super) async fn named(&self, named: Named) -> Result<Option<QueryResult>> {
        match named {
            Named::Prepare { name, text } => {
                let text = match text {
                    Source::Literal(text) => text,
                    Source::Variable(variable) => match self.variable(&variable)? {
                        Expr::Value(of) => match of.value {
                            Value::SingleQuotedString(text) => text,
                            other => other.to_string(),
                        },
                        other => other.to_string(),
                    },
                };
                self.shared.variables.write().prepare(name, text);
                Ok(None)
            }
            Named::Execute { name, variables } => {
                let text =
                    self.shared.variables.read().prepared(&name).ok_or_else(|| unknown(&name, "EXECUTE"))?;
                let tokens = command::tokens(&text)?;
                let mut values = variables.iter();
                let mut sql = String::with_capacity(text.len());
                for token in &tokens {
                    match token {
                        Token::Placeholder(mark) if mark == "?" => {
                            let variable = values.next().ok_or_else(wrong_count)?;
                            sql.push_str(&self.written(variable)?);
                        }
                        other => sql.push_str(&other.to_string()),
                    }
                }
                match values.next() {
                    Some(_) => Err(wrong_count()),
                    None => Box::pin(self.executed(&sql)).await.map(Some),
                }
            }
            Named::Deallocate(name) => match self.shared.variables.write().forget(&name) {
                true => Ok(None),
                false => Err(unknown(&name, "DEALLOCATE PREPARE")),
            },
            Named::Do(expressions) => {
                let mut result = Box::pin(self.executed(&format!("SELECT {expressions}"))).await?;
                result.collect().await?;
                Ok(None)
            }
        }
    }

    /// A variable as a placeholder's value: a number is written, as LIMIT takes it.
    fn written(&self, variable: &str) -> Result<String> {
        let is_number = |of: &Expr| matches!(of, Expr::Value(of) if matches!(of.value, Value::Number(..)));
        Ok(match self.variable(variable)? {
            value if is_number(&value) => value.to_string(),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } if is_number(&expr) => format!("-{expr}"),
            _ => variable.to_owned(),
        })
    }

    /// Sets variables to the values of a query's only row; without a row they stay as they are.
    pub(super) async fn select_into(&self, sql: &str, variables: &[String]) -> Result<()> {
        let rows = self.literals(sql).await?;
        let [row] = rows.as_slice() else {
            return match rows.is_empty() {
                true => Ok(()),
                false => Err(Error::new(ErrorKind::InvalidInput, "Result consisted of more than one row")),
            };
        };
        if row.len() != variables.len() {
            let message = "The used SELECT statements have a different number of columns";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        for (variable, value) in variables.iter().zip(row) {
            self.set_user_variable(variable, value.clone());
        }
        Ok(())
    }
}

fn unknown(name: &str, given_to: &str) -> Error {
    let message = format!("Unknown prepared statement handler ({name}) given to {given_to}");
    Error::new(ErrorKind::InvalidInput, message)
}

fn wrong_count() -> Error {
    Error::new(ErrorKind::InvalidInput, "Incorrect arguments to EXECUTE")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(sql: &str) -> Option<Named> {
        let tokens = command::tokens(sql).unwrap();
        let plain: Vec<&Token> =
            tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
        read(&plain).unwrap()
    }

    #[test]
    fn statements_have_names() {
        let text = Source::Literal("select 'a' + ?".to_string());
        assert_eq!(
            named("prepare S from 'select ''a'' + ?'"),
            Some(Named::Prepare { name: "s".to_string(), text })
        );
        let variables = vec!["@a".to_string(), "@b".to_string()];
        assert_eq!(
            named("execute s using @a, @b"),
            Some(Named::Execute { name: "s".to_string(), variables })
        );
        assert_eq!(named("deallocate prepare s"), Some(Named::Deallocate("s".to_string())));
        assert_eq!(named("select 1"), None);
    }

    #[test]
    fn variables_are_taken_out_of_a_select() {
        let taken = |sql: &str| into_variables(&command::tokens(sql).unwrap());
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            taken("select a, b into @x, @y from t"),
            Some(("select a, b  from t".to_string(), names(&["@x", "@y"])))
        );
        assert_eq!(taken("select a from t into @x"), Some(("select a from t ".to_string(), names(&["@x"]))));
        assert_eq!(taken("select a from t into outfile 'x'"), None);
        assert_eq!(taken("select (select 1 into @x)"), None);
    }
}
