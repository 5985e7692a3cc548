//! Named windows: each `OVER w` and `OVER (w ...)` becomes a window of its own.
//!
//! A window that is built on another has its PARTITION BY, its ORDER BY if there is one, and no frame of it.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, NamedWindowDefinition, NamedWindowExpr, OrderBy, Query, Select, VisitMut, VisitorMut,
    WindowSpec, WindowType,
};

use super::invalid;
use super::scope::same;
use crate::{Error, Result};

/// Writes the windows of the WINDOW clause where the select list and the ORDER BY name them.
///
/// # Errors
/// `Invalid` if there is no such window, or it cannot be built upon.
pub(super) fn write(select: &mut Select, order_by: &mut Option<OrderBy>) -> Result<()> {
    let definitions = std::mem::take(&mut select.named_window);
    let mut windows: Vec<(Ident, WindowSpec)> = Vec::with_capacity(definitions.len());
    for definition in &definitions {
        if windows.iter().any(|(name, _)| same(&name.value, &definition.0.value)) {
            return Err(invalid(format!("Window '{}' is defined twice.", definition.0.value)));
        }
        let spec = resolved(definition, &definitions, 0)?;
        windows.push((definition.0.clone(), spec));
    }
    let mut writing = Writing { windows: &windows, depth: 0 };
    let flow = match select.projection.visit(&mut writing) {
        ControlFlow::Continue(()) => order_by.visit(&mut writing),
        broken => broken,
    };
    match flow {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// A window of the clause with what it is built on.
fn resolved(
    definition: &NamedWindowDefinition,
    all: &[NamedWindowDefinition],
    depth: usize,
) -> Result<WindowSpec> {
    if depth > all.len() {
        return Err(invalid("There is a circularity in the window dependency graph."));
    }
    let base = |name: &Ident| match all.iter().find(|of| same(&of.0.value, &name.value)) {
        Some(definition) => resolved(definition, all, depth + 1),
        None => Err(undefined(name)),
    };
    match &definition.1 {
        NamedWindowExpr::NamedWindow(name) => base(name),
        NamedWindowExpr::WindowSpec(spec) => match &spec.window_name {
            Some(name) => built(spec, name, base(name)?),
            None => Ok(spec.clone()),
        },
    }
}

/// A window built on another.
fn built(spec: &WindowSpec, name: &Ident, base: WindowSpec) -> Result<WindowSpec> {
    if base.window_frame.is_some() {
        let message = "has a frame definition, so cannot be referenced by another window.";
        return Err(invalid(format!("Window '{}' {message}", name.value)));
    }
    if !spec.partition_by.is_empty() {
        return Err(invalid("A window which depends on another cannot define partitioning."));
    }
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        return Err(invalid(format!("A window cannot have an order where '{}' has one.", name.value)));
    }
    Ok(WindowSpec {
        window_name: None,
        partition_by: base.partition_by,
        order_by: if spec.order_by.is_empty() { base.order_by } else { spec.order_by.clone() },
        window_frame: spec.window_frame.clone(),
    })
}

fn undefined(name: &Ident) -> Error {
    invalid(format!("Window name '{}' is not defined.", name.value))
}

struct Writing<'a> {
    windows: &'a [(Ident, WindowSpec)],
    /// Subqueries around, which have windows of their own.
    depth: usize,
}

impl Writing<'_> {
    fn find(&self, name: &Ident) -> Result<WindowSpec> {
        let found = self.windows.iter().find(|(of, _)| same(&of.value, &name.value));
        found.map(|(_, spec)| spec.clone()).ok_or_else(|| undefined(name))
    }

    fn written(&self, over: &WindowType) -> Result<Option<WindowType>> {
        let spec = match over {
            WindowType::NamedWindow(name) => self.find(name)?,
            WindowType::WindowSpec(spec) => match &spec.window_name {
                Some(name) => built(spec, name, self.find(name)?)?,
                None => return Ok(None),
            },
        };
        Ok(Some(WindowType::WindowSpec(spec)))
    }
}

impl VisitorMut for Writing<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Function(function) = expression
            && self.depth == 0
            && let Some(over) = &function.over
        {
            match self.written(over) {
                Ok(Some(written)) => function.over = Some(written),
                Ok(None) => {}
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::{SetExpr, Statement};
    use datafusion::sql::sqlparser::dialect::MySqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn written(sql: &str) -> Result<String> {
        let statement = Parser::parse_sql(&MySqlDialect {}, sql).unwrap().remove(0);
        let Statement::Query(mut query) = statement else { panic!("no query") };
        let SetExpr::Select(select) = query.body.as_mut() else { panic!("no select") };
        write(select, &mut query.order_by)?;
        Ok(query.to_string())
    }

    #[test]
    fn a_window_keeps_what_it_is_built_on() {
        let clause = "from t window w as (partition by g), v as (w order by k)";
        let cases = [
            ("sum(a) over w", "sum(a) OVER (PARTITION BY g)"),
            ("sum(a) over (w)", "sum(a) OVER (PARTITION BY g)"),
            ("sum(a) over (w order by k)", "sum(a) OVER (PARTITION BY g ORDER BY k)"),
            ("sum(a) over V", "sum(a) OVER (PARTITION BY g ORDER BY k)"),
            ("sum(a) over (v rows 1 preceding)", "sum(a) OVER (PARTITION BY g ORDER BY k ROWS 1 PRECEDING)"),
        ];
        for (sql, expected) in cases {
            assert_eq!(
                written(&format!("select {sql} {clause}")).unwrap(),
                format!("SELECT {expected} FROM t")
            );
        }
        for sql in ["sum(a) over u", "sum(a) over (w partition by h)", "sum(a) over (v order by h)"] {
            assert!(written(&format!("select {sql} {clause}")).is_err(), "{sql}");
        }
        for clause in ["w as (v), v as (w)", "w as (rows 1 preceding), v as (w)", "w as (), W as ()"] {
            assert!(written(&format!("select 1 from t window {clause}")).is_err(), "{clause}");
        }
    }
}
