//! Which tables a statement names.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, SelectItem, Statement as SqlStatement, Visit, Visitor,
};

/// Tables that a statement names, and the names of its WITH queries.
#[derive(Debug, Default)]
pub(in crate::session) struct Relations {
    pub tables: Vec<ObjectName>,
    pub common: Vec<String>,
}

impl Visitor for Relations {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        if !self.tables.contains(relation) {
            self.tables.push(relation.clone());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
        self.common.extend(ctes.map(|cte| cte.alias.name.value.to_lowercase()));
        if let datafusion::sql::sqlparser::ast::SetExpr::Table(table) = query.body.as_ref()
            && let Some(name) = &table.table_name
        {
            let parts = table.schema_name.iter().chain([name]);
            let name = ObjectName::from(parts.map(|part| super::quoted(part)).collect::<Vec<_>>());
            self.tables.push(name);
        }
        ControlFlow::Continue(())
    }
}

/// The tables that a statement names.
pub(in crate::session) fn relations(statement: &Statement) -> Relations {
    let mut inner = statement;
    while let Statement::Explain(explain) = inner {
        inner = explain.statement.as_ref();
    }
    let mut relations = Relations::default();
    if let Statement::Statement(sql) = inner {
        let sql: &SqlStatement = sql.as_ref();
        let _: ControlFlow<()> = sql.visit(&mut relations);
    }
    relations
}

/// The tables that a query names, each as its parts.
pub(in crate::session) fn names_in(query: &Query) -> Vec<Vec<String>> {
    let mut relations = Relations::default();
    let _: ControlFlow<()> = query.visit(&mut relations);
    let parts = |name: &ObjectName| {
        name.0.iter().filter_map(|part| part.as_ident().map(|ident| ident.value.clone())).collect()
    };
    relations.tables.iter().map(parts).collect()
}

/// What a query calls its results, in lower case: none of these may become the name of a table.
pub(super) fn results_in(query: &Query) -> Vec<String> {
    struct Results(Vec<String>);
    impl Visitor for Results {
        type Break = ();

        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            for item in &select.projection {
                match item {
                    SelectItem::ExprWithAlias { alias, .. } => self.0.push(alias.value.to_lowercase()),
                    SelectItem::UnnamedExpr(Expr::Identifier(name)) => self.0.push(name.value.to_lowercase()),
                    SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
                        self.0.extend(parts.last().map(|name| name.value.to_lowercase()));
                    }
                    _ => {}
                }
            }
            ControlFlow::Continue(())
        }

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
            let columns = ctes.flat_map(|cte| &cte.alias.columns);
            self.0.extend(columns.map(|column| column.name.value.to_lowercase()));
            ControlFlow::Continue(())
        }
    }
    let mut results = Results(Vec::new());
    let _: ControlFlow<()> = query.visit(&mut results);
    results.0
}
