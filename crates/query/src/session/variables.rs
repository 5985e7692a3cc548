//! Settings as MySQL's users ask for them: `SHOW VARIABLES LIKE 'tanada.%'` and `SELECT @@tanada.placement`. (`SHOW tanada.placement` and `SHOW ALL` are DataFusion's.)

use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, StringArray};
use datafusion::arrow::compute::kernels::comparison::ilike;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DataFusionError, Result as DataFusionResult, ScalarValue};
use datafusion::logical_expr::var_provider::VarProvider;

use crate::Result;

/// What a variable may begin with before its name. All settings are the session's.
const SCOPES: [&str; 3] = ["session", "local", "global"];

/// Names and values of the settings whose names are like `pattern`, by name; of all without one.
pub(super) fn listed(
    options: &ConfigOptions,
    pattern: Option<&str>,
) -> Result<Vec<(String, Option<String>)>> {
    let mut entries: Vec<(String, Option<String>)> =
        options.entries().into_iter().map(|entry| (entry.key, entry.value)).collect();
    entries.sort_unstable();
    let Some(pattern) = pattern else { return Ok(entries) };
    let names: StringArray = entries.iter().map(|(name, _)| Some(name)).collect();
    let is_like: BooleanArray =
        ilike(&names, &StringArray::new_scalar(pattern)).map_err(DataFusionError::from)?;
    let kept = entries.into_iter().zip(&is_like).filter(|(_, is_like)| *is_like == Some(true));
    Ok(kept.map(|(entry, _)| entry).collect())
}

/// The settings of a session as `@@name` and `@@session.name`.
#[derive(Debug)]
pub(super) struct Variables(pub(super) Arc<ConfigOptions>);

impl Variables {
    fn value(&self, names: &[String]) -> DataFusionResult<Option<String>> {
        let mut parts: Vec<String> =
            names.iter().map(|name| name.trim_start_matches('@').to_ascii_lowercase()).collect();
        if parts.len() > 1 && SCOPES.contains(&parts[0].as_str()) {
            parts.remove(0);
        }
        let name = parts.join(".");
        let entry = self.0.entries().into_iter().find(|entry| entry.key == name);
        let unknown =
            || DataFusionError::Configuration(format!("there is no variable @@{name}; see SHOW VARIABLES"));
        Ok(entry.ok_or_else(unknown)?.value)
    }
}

impl VarProvider for Variables {
    fn get_value(&self, names: Vec<String>) -> DataFusionResult<ScalarValue> {
        let value = self.value(&names)?;
        Ok(match value.as_ref().and_then(|value| value.parse().ok()) {
            Some(number) => ScalarValue::Int64(Some(number)),
            None => ScalarValue::Utf8(value),
        })
    }

    /// What is not known has a type, too: its value is where it can be said what is wrong.
    fn get_type(&self, names: &[String]) -> Option<DataType> {
        let value = self.get_value(names.to_vec());
        Some(value.map_or(DataType::Utf8, |value| value.data_type()))
    }
}
