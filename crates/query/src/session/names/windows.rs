//! Named windows: each `OVER w` and `OVER (w ...)` becomes a window of its own.
//!
//! A window that is built on another has its PARTITION BY, its ORDER BY if there is one, and no frame of it.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, DuplicateTreatment, Expr, Function, FunctionArguments, Ident,
    NamedWindowDefinition, NamedWindowExpr, OrderBy, Query, Select, Value, VisitMut, VisitorMut, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};

use super::expression::{arguments, is_called};
use super::invalid;
use super::quantified::call_of;
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

/// What neither server computes.
fn check(function: &Function) -> Result<()> {
    let is_distinct = match &function.args {
        FunctionArguments::List(list) => list.duplicate_treatment == Some(DuplicateTreatment::Distinct),
        _ => false,
    };
    if is_distinct {
        return Err(invalid("<window function>(DISTINCT ..) is not run: neither MySQL nor MariaDB has it"));
    }
    let Some(WindowType::WindowSpec(WindowSpec { window_frame: Some(frame), .. })) = &function.over else {
        return Ok(());
    };
    match frame.units {
        WindowFrameUnits::Groups => {
            Err(invalid("GROUPS frames are not run: neither MySQL nor MariaDB has them"))
        }
        _ => Ok(()),
    }
}

/// What a window function becomes that the engine does not have: one over a frame that is always empty, and LAG and
/// LEAD with a default that is no constant.
fn rewritten(function: &Function) -> Option<Expr> {
    let Some(WindowType::WindowSpec(spec)) = &function.over else { return None };
    if let Some(frame) = &spec.window_frame
        && is_empty(frame)
    {
        let mut of_all = function.clone();
        of_all.over = Some(WindowType::WindowSpec(WindowSpec { window_frame: None, ..spec.clone() }));
        if is_called(function, "count") {
            return Some(Expr::value(Value::Number("0".to_string(), false)));
        }
        let never = Expr::value(Value::Boolean(false));
        return Some(when(never, Expr::Function(of_all), Expr::value(Value::Null)));
    }
    if !is_called(function, "lag") && !is_called(function, "lead") {
        return None;
    }
    let [value, offset, default] = <[Expr; 3]>::try_from(arguments(function)).ok()?;
    let is_literal = |of: &Expr| match of {
        Expr::UnaryOp { expr, .. } => matches!(expr.as_ref(), Expr::Value(_)),
        other => matches!(other, Expr::Value(_)),
    };
    if is_literal(&default) {
        return None;
    }
    let number = |number: &str| Expr::value(Value::Number(number.to_string(), false));
    let of = |arguments: Vec<Expr>| {
        let Expr::Function(mut call) = call_of(&function.name.to_string(), arguments) else { return None };
        call.over = function.over.clone();
        Some(Expr::Function(call))
    };
    let is_none = Expr::BinaryOp {
        left: Box::new(of(vec![number("1"), offset.clone(), number("0")])?),
        op: BinaryOperator::Eq,
        right: Box::new(number("0")),
    };
    Some(when(is_none, default, of(vec![value, offset])?))
}

/// `CASE WHEN condition THEN value ELSE otherwise END`
fn when(condition: Expr, value: Expr, otherwise: Expr) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result: value }],
        else_result: Some(Box::new(otherwise)),
    }
}

/// Whether the end of a frame is before its start: `3 FOLLOWING AND 1 FOLLOWING`, `1 PRECEDING AND 3 PRECEDING`.
fn is_empty(frame: &WindowFrame) -> bool {
    let number = |bound: &Option<Box<Expr>>| match bound.as_deref() {
        Some(Expr::Value(of)) => match &of.value {
            Value::Number(number, _) => number.parse::<f64>().ok(),
            _ => None,
        },
        _ => None,
    };
    match (&frame.start_bound, &frame.end_bound) {
        (WindowFrameBound::Following(start), Some(WindowFrameBound::Following(end))) => {
            number(start).zip(number(end)).is_some_and(|(start, end)| start > end)
        }
        (WindowFrameBound::Preceding(start), Some(WindowFrameBound::Preceding(end))) => {
            number(start).zip(number(end)).is_some_and(|(start, end)| start < end)
        }
        _ => false,
    }
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
            let written = self.written(over).and_then(|written| {
                function.over = written.or_else(|| function.over.take());
                check(function)
            });
            if let Err(error) = written {
                return ControlFlow::Break(error);
            }
            if let Some(written) = rewritten(function) {
                *expression = written;
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
