//! Variables: the settings of Tanada (`@@tanada.placement`), those of the servers (`@@sql_mode`) and users' (`@x`).
//!
//! The servers' variables have the values of a server as it is installed. A session may set those on which no answer
//! depends, and those whose effect is known here; any other value is refused.

mod system;

use std::collections::HashMap;

use datafusion::arrow::array::{BooleanArray, StringArray};
use datafusion::arrow::compute::kernels::comparison::ilike;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::DataFusionError;
use datafusion::common::config::ConfigOptions;
use datafusion::sql::sqlparser::ast::{Expr, UnaryOperator, Value};
use tanada_innodb::schema::Server;

use super::Session;
use super::set::Assignment;
use crate::expression::{Connection, Zone};
use crate::settings::TanadaOptions;
use crate::text::column_text;
use crate::{Error, ErrorKind, Result};
use system::Change;

/// What a variable may begin with before its name. All settings are the session's.
const SCOPES: [&str; 3] = ["session", "local", "global"];

/// Modes that change how statements are read or computed in ways that are not implemented.
const REFUSED_MODES: [&str; 13] = [
    "ANSI",
    "ANSI_QUOTES",
    "PIPES_AS_CONCAT",
    "NO_BACKSLASH_ESCAPES",
    "HIGH_NOT_PRECEDENCE",
    "PAD_CHAR_TO_FULL_LENGTH",
    "NO_UNSIGNED_SUBTRACTION",
    "REAL_AS_FLOAT",
    "ORACLE",
    "TIME_ROUND_FRACTIONAL",
    "EMPTY_STRING_IS_NULL",
    "ALLOW_INVALID_DATES",
    "TIME_TRUNCATE_FRACTIONAL",
];

/// Modes that change nothing that is read.
const TAKEN_MODES: [&str; 11] = [
    "ONLY_FULL_GROUP_BY",
    "STRICT_TRANS_TABLES",
    "STRICT_ALL_TABLES",
    "NO_ZERO_IN_DATE",
    "NO_ZERO_DATE",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "NO_ENGINE_SUBSTITUTION",
    "NO_AUTO_CREATE_USER",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_DIR_IN_CREATE",
    "IGNORE_SPACE",
];

/// Modes that stand for several.
const TRADITIONAL: &str = "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,TRADITIONAL";

/// What statements of a session have set.
#[derive(Debug, Default)]
pub(super) struct Set {
    /// Users' variables, in lower case.
    users: HashMap<String, Expr>,
    /// The servers' variables, in lower case.
    system: HashMap<String, String>,
    /// The texts of prepared statements.
    statements: HashMap<String, String>,
}

impl Set {
    /// Keeps a statement under a name.
    pub(super) fn prepare(&mut self, name: String, sql: String) {
        self.statements.insert(name, sql);
    }

    /// The statement of a name.
    pub(super) fn prepared(&self, name: &str) -> Option<String> {
        self.statements.get(name).cloned()
    }

    /// Whether there was a statement of this name, which is gone now.
    pub(super) fn forget(&mut self, name: &str) -> bool {
        self.statements.remove(name).is_some()
    }
}

/// Names and values of the settings whose names are like `pattern`, by name; of all without one.
pub(super) fn listed(
    options: &ConfigOptions,
    system: Vec<(String, String)>,
    pattern: Option<&str>,
) -> Result<Vec<(String, Option<String>)>> {
    let mut entries: Vec<(String, Option<String>)> =
        options.entries().into_iter().map(|entry| (entry.key, entry.value)).collect();
    entries.extend(system.into_iter().map(|(name, value)| (name, Some(value))));
    entries.sort_unstable();
    let Some(pattern) = pattern else { return Ok(entries) };
    let names: StringArray = entries.iter().map(|(name, _)| Some(name)).collect();
    let is_like: BooleanArray =
        ilike(&names, &StringArray::new_scalar(pattern)).map_err(DataFusionError::from)?;
    let kept = entries.into_iter().zip(&is_like).filter(|(_, is_like)| *is_like == Some(true));
    Ok(kept.map(|(entry, _)| entry).collect())
}

/// The name without signs and scope, in lower case.
fn bare(name: &str) -> String {
    let lower = name.trim_start_matches('@').to_ascii_lowercase();
    let lower = lower.replace('`', "");
    match lower.split_once('.') {
        Some((scope, rest)) if SCOPES.contains(&scope) => rest.to_string(),
        _ => lower,
    }
}

/// A value as an expression: a number if it is one.
fn literal(value: &str) -> Expr {
    let unsigned = value.strip_prefix('-').unwrap_or(value);
    let digits = unsigned.strip_prefix(|c: char| c.is_ascii_digit()).map_or("x", |rest| rest);
    let is_number = !unsigned.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    if !is_number || unsigned.matches('.').count() > 1 {
        return Expr::value(Value::SingleQuotedString(value.to_string()));
    }
    let number = Expr::value(Value::Number(unsigned.to_string(), false));
    match value.starts_with('-') {
        true => Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number) },
        false => number,
    }
}

/// A value that is printed so as a literal.
fn as_literal(data_type: &DataType, text: Option<Vec<u8>>) -> Expr {
    let Some(text) = text else { return Expr::value(Value::Null) };
    let text = String::from_utf8_lossy(&text).into_owned();
    match data_type {
        data_type if data_type.is_integer() || data_type.is_decimal() => literal(&text),
        DataType::Boolean => literal(&text),
        // A number with an exponent is a double.
        data_type if data_type.is_floating() => literal_double(&text),
        _ => Expr::value(Value::SingleQuotedString(text)),
    }
}

fn literal_double(text: &str) -> Expr {
    let number = match text.contains(['e', 'E']) {
        true => text.to_string(),
        false => format!("{text}e0"),
    };
    match number.strip_prefix('-') {
        Some(unsigned) => Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr: Box::new(Expr::value(Value::Number(unsigned.to_string(), false))),
        },
        None => Expr::value(Value::Number(number, false)),
    }
}

impl Session {
    /// What a variable is, by its name with its signs.
    pub(super) fn variable(&self, name: &str) -> Result<Expr> {
        if !name.starts_with("@@") {
            let users = self.shared.variables.read();
            let name = bare(name);
            return Ok(users.users.get(&name).cloned().unwrap_or_else(|| Expr::value(Value::Null)));
        }
        let name = bare(name);
        if let Some(value) = self.system_value(&name) {
            let is_text = system::named(&name, self.options().server)
                .is_some_and(|variable| variable.name == "version" || variable.name == "sql_mode");
            return Ok(match is_text {
                true => Expr::value(Value::SingleQuotedString(value)),
                false => literal(&value),
            });
        }
        let state = self.shared.state.read();
        let entry = state.config_options().entries().into_iter().find(|entry| entry.key == name);
        match entry {
            Some(entry) => Ok(entry.value.map_or_else(|| Expr::value(Value::Null), |value| literal(&value))),
            None if name.contains('.') => {
                let message = format!("there is no variable @@{name}; see SHOW VARIABLES");
                Err(Error::new(ErrorKind::InvalidInput, message))
            }
            None => Err(unknown(&name)),
        }
    }

    /// The value of one of the server's variables.
    fn system_value(&self, name: &str) -> Option<String> {
        let variable = system::named(name, self.options().server)?;
        let set = self.shared.variables.read().system.get(variable.name).cloned();
        set.or_else(|| variable.value_at(&self.options()).map(str::to_string))
    }

    /// The server's variables as SHOW has them.
    pub(super) fn system_variables(&self) -> Vec<(String, String)> {
        let names = system::all(self.options().server).map(|variable| variable.name);
        names
            .filter_map(|name| Some((name.to_string(), system::shown(name, self.system_value(name)?))))
            .collect()
    }

    /// Whether a mode of SQL is on.
    pub(super) fn is_mode(&self, mode: &str) -> bool {
        let modes = self.system_value("sql_mode").unwrap_or_default();
        modes.split(',').any(|on| on.eq_ignore_ascii_case(mode))
    }

    /// Carries out the assignments of a SET. The values of all users' variables are computed before any is set.
    pub(super) async fn assign(&self, assignments: Vec<Assignment>) -> Result<()> {
        let mut values = Vec::new();
        for assignment in &assignments {
            if let Assignment::User { expression, .. } = assignment {
                values.push(self.value_of(expression).await?);
            }
        }
        let mut values = values.into_iter();
        for assignment in assignments {
            match assignment {
                Assignment::User { name, .. } => {
                    let value = values.next().unwrap_or(Expr::value(Value::Null));
                    self.shared.variables.write().users.insert(bare(&name), value);
                }
                other => self.assign_one(other).await?,
            }
        }
        Ok(())
    }

    async fn assign_one(&self, assignment: Assignment) -> Result<()> {
        match assignment {
            Assignment::Setting { key, value } => self.set(&key, &value).await,
            Assignment::User { .. } => Ok(()),
            Assignment::System { name, expression: None } => self.set_system_variable(&name, None),
            Assignment::System { name, expression: Some(expression) } => {
                let value = match self.value_of(&expression).await? {
                    Expr::Value(value) => value.value.to_string().trim_matches('\'').to_string(),
                    other => other.to_string(),
                };
                self.set_system_variable(&name, Some(&value))
            }
            Assignment::Names { charset, collation } => self.set_names(&charset, collation.as_deref()),
            Assignment::Transaction => Ok(()),
        }
    }

    /// The value of an expression, as a literal.
    async fn value_of(&self, expression: &str) -> Result<Expr> {
        let rows = self.literals(&format!("SELECT {expression}")).await?;
        let value = rows.into_iter().next().and_then(|row| row.into_iter().next());
        Ok(value.unwrap_or(Expr::value(Value::Null)))
    }

    /// The rows of a query as literals.
    pub(super) async fn literals(&self, sql: &str) -> Result<Vec<Vec<Expr>>> {
        let mut result = Box::pin(self.executed(sql)).await?;
        let batches = result.collect().await?;
        let schema = result.schema();
        let mut rows = Vec::new();
        for batch in &batches {
            let first = rows.len();
            rows.resize_with(first + batch.num_rows(), Vec::new);
            for (field, column) in schema.fields().iter().zip(batch.columns()) {
                for (row, text) in column_text(field, column)?.into_iter().enumerate() {
                    if let Some(row) = rows.get_mut(first + row) {
                        row.push(as_literal(field.data_type(), text.map(|text| text.to_vec())));
                    }
                }
            }
        }
        Ok(rows)
    }

    /// Sets a user's variable.
    pub(super) fn set_user_variable(&self, name: &str, value: Expr) {
        self.shared.variables.write().users.insert(bare(name), value);
    }

    /// Sets one of the server's variables; `None` is its default.
    ///
    /// # Errors
    /// If there is none of this name, or answers would be others than the server's.
    pub(super) fn set_system_variable(&self, name: &str, value: Option<&str>) -> Result<()> {
        let server = self.options().server;
        let name = bare(name);
        let Some(variable) = system::named(&name, server) else { return Err(unknown(&name)) };
        let options = self.options();
        let default = variable.value_at(&options).unwrap_or_default();
        let Some(value) = value else {
            self.set_length_of_groups(&name, "0")?;
            self.shared.variables.write().system.remove(variable.name);
            return Ok(());
        };
        let kept = match variable.change {
            Change::Never => {
                let message = format!("Variable '{name}' is a read only variable");
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            Change::Number { least, most } => {
                let number = value.parse::<u64>().map_err(|_| {
                    let message = format!("Incorrect argument type to variable '{name}'");
                    Error::new(ErrorKind::InvalidInput, message)
                })?;
                let number = number.clamp(least, most).to_string();
                self.set_length_of_groups(&name, &number)?;
                number
            }
            Change::Refused if value.eq_ignore_ascii_case(default) => default.to_string(),
            Change::Refused => {
                let message = format!("{name} cannot be set to '{value}': it stays {default}");
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            Change::Shown => switched(value, default),
            Change::TimeZone => match Zone::parse(value, server == Server::MySql) {
                Some(_) => value.to_string(),
                None => {
                    let message = format!("Unknown or incorrect time zone: '{value}'");
                    return Err(Error::new(ErrorKind::InvalidInput, message));
                }
            },
            Change::Mode => modes(value)?,
            Change::Charset => charset(&name, value, default, options.connection())?,
        };
        self.shared.variables.write().system.insert(variable.name.to_string(), kept);
        Ok(())
    }

    /// The zone by whose clock TIMESTAMPs are shown; that of the server is UTC here.
    pub(super) fn time_zone(&self) -> Zone {
        let is_mysql = self.options().server == Server::MySql;
        let variables = self.shared.variables.read();
        variables.system.get("time_zone").and_then(|name| Zone::parse(name, is_mysql)).unwrap_or(Zone::UTC)
    }

    /// How texts compare that name no collation.
    pub(super) fn connection(&self, options: &TanadaOptions) -> Connection {
        let own = options.connection();
        let variables = self.shared.variables.read();
        let set = variables.system.get("collation_connection");
        set.and_then(|name| own.with_collation(name)).unwrap_or(own)
    }

    /// `group_concat_max_len` is a setting of Tanada, too.
    fn set_length_of_groups(&self, name: &str, value: &str) -> Result<()> {
        if name == "group_concat_max_len" {
            let mut state = self.shared.state.write();
            state.config_mut().options_mut().set("tanada.group_concat_max_len", value)?;
        }
        Ok(())
    }

    /// A variable that is a number, if it was set.
    pub(super) fn number_set(&self, name: &str) -> Option<u64> {
        self.shared.variables.read().system.get(name)?.parse().ok()
    }

    /// `SET NAMES charset [COLLATE collation]`
    pub(super) fn set_names(&self, charset: &str, collation: Option<&str>) -> Result<()> {
        for name in ["character_set_client", "character_set_connection", "character_set_results"] {
            self.set_system_variable(name, (!charset.eq_ignore_ascii_case("DEFAULT")).then_some(charset))?;
        }
        match collation {
            Some(collation) => self.set_system_variable("collation_connection", Some(collation)),
            None => self.set_system_variable("collation_connection", None),
        }
    }
}

/// ON and OFF of switches are 1 and 0.
fn switched(value: &str, default: &str) -> String {
    let is_switch = matches!(default, "0" | "1");
    match value.to_ascii_uppercase().as_str() {
        "ON" | "TRUE" if is_switch => "1".to_string(),
        "OFF" | "FALSE" if is_switch => "0".to_string(),
        _ => value.to_string(),
    }
}

fn modes(value: &str) -> Result<String> {
    let mut modes: Vec<String> = Vec::new();
    for mode in value.split(',').map(|mode| mode.trim().to_ascii_uppercase()).filter(|mode| !mode.is_empty())
    {
        if mode == "TRADITIONAL" {
            modes.extend(TRADITIONAL.split(',').map(str::to_string));
        } else if TAKEN_MODES.contains(&mode.as_str()) {
            modes.push(mode);
        } else if REFUSED_MODES.contains(&mode.as_str()) {
            let message = format!("sql_mode {mode} is not supported");
            return Err(Error::new(ErrorKind::Unsupported, message));
        } else {
            let message = format!("Variable 'sql_mode' can't be set to the value of '{mode}'");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
    }
    Ok(modes.join(","))
}

/// Texts of a statement and of its results are UTF-8.
fn charset(name: &str, value: &str, default: &str, connection: Connection) -> Result<String> {
    let value = value.to_ascii_lowercase();
    let refused = || {
        let message = format!("{name} cannot be set to '{value}': statements and results are in utf8mb4");
        Error::new(ErrorKind::Unsupported, message)
    };
    if name.starts_with("collation") {
        let is_known = name == "collation_connection" && connection.with_collation(&value).is_some();
        return if is_known || value == default { Ok(value) } else { Err(refused()) };
    }
    match value.as_str() {
        "utf8mb4" | "utf8" | "utf8mb3" => Ok(value),
        // Results are sent as they are.
        "null" if name == "character_set_results" => Ok(value),
        _ => Err(refused()),
    }
}

fn unknown(name: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("Unknown system variable '{name}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_digits_are_numbers() {
        assert_eq!(literal("1024").to_string(), "1024");
        assert_eq!(literal("-1").to_string(), "-1");
        assert_eq!(literal("10.000000").to_string(), "10.000000");
        assert_eq!(literal("REPEATABLE-READ").to_string(), "'REPEATABLE-READ'");
        assert_eq!(literal("").to_string(), "''");
    }

    #[test]
    fn scopes_and_signs_are_no_part_of_a_name() {
        assert_eq!(bare("@@Session.SQL_MODE"), "sql_mode");
        assert_eq!(bare("@@tanada.server"), "tanada.server");
        assert_eq!(bare("@X"), "x");
    }

    #[test]
    fn modes_that_change_answers_are_refused() {
        assert_eq!(
            modes("strict_trans_tables, only_full_group_by").unwrap(),
            "STRICT_TRANS_TABLES,ONLY_FULL_GROUP_BY"
        );
        assert!(modes("ANSI_QUOTES").unwrap_err().to_string().contains("not supported"));
        assert!(modes("NOTHING").is_err());
    }
}
