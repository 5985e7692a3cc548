//! Whose rules a statement follows, where the rules of the analyzer find it.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::common::{Result, config_err};

use crate::expression::{Connection, Notes, Rules};
use crate::session::context::QueryContext;
use crate::settings::TanadaOptions;

/// The rules and the context of one statement.
#[derive(Debug, Clone)]
pub(crate) struct StatementRules {
    pub(super) rules: Rules,
    pub(super) query: Arc<QueryContext>,
}

impl StatementRules {
    /// Of the statement that `query` is the context of.
    pub(crate) fn new(rules: Rules, query: Arc<QueryContext>) -> StatementRules {
        StatementRules { rules, query }
    }

    /// How the texts of the statement compare that name no collation.
    pub(crate) fn connection(config: &ConfigOptions) -> Connection {
        match config.extensions.get::<StatementRules>() {
            Some(statement) => statement.rules.connection,
            None => config.extensions.get::<TanadaOptions>().cloned().unwrap_or_default().connection(),
        }
    }

    /// The rules.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Hands the warnings of a computation to the statement.
    pub(crate) fn note(&self, notes: Notes, constant: Option<&str>) {
        self.query.note(notes, constant);
    }

    /// The collation of texts that name none: of MySQL the connection's, of MariaDB the default database's.
    pub(crate) fn text_collation(&self) -> String {
        let of_database = self.query.text_collation().filter(|_| !self.rules.mysql);
        of_database.unwrap_or_else(|| self.rules.connection.collation.to_string())
    }
}

impl ConfigExtension for StatementRules {
    const PREFIX: &'static str = "tanada_statement";
}

impl ExtensionOptions for StatementRules {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _: &str) -> Result<()> {
        config_err!("there is no setting {key}")
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}
