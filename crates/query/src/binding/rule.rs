//! The rule that binds calls to their operands.

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use tanada_innodb::schema::Server;

use super::aggregates::of_server;
use super::bound::{BoundCall, input, literal, typed_call};
use super::call::ServerCall;
use super::field::{kind_of, kind_of_literal};
use super::{KIND, native, plans, unsupported};
use crate::collation::Texts;
use crate::expression::{Kind, Node, Refusal, Rules, Typed};
use crate::settings::TanadaOptions;

/// Replaces each [`ServerCall`] by what computes it.
#[derive(Debug)]
pub(crate) struct BindingRule;

impl AnalyzerRule for BindingRule {
    fn name(&self) -> &str {
        "server_expressions"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let server = config.extensions.get::<TanadaOptions>().cloned().unwrap_or_default().server;
        // What is above an aggregate is bound to its digits.
        let plan = plan.transform_up_with_subqueries(|node| {
            bind_plan(node, server)?.transform_data(|node| of_server(node, config))
        });
        plans::shown(plan?.data)
    }
}

fn bind_plan(plan: LogicalPlan, server: Server) -> Result<Transformed<LogicalPlan>> {
    let plan = match plan {
        LogicalPlan::Union(union) => plans::with_common_types(union)?,
        LogicalPlan::RecursiveQuery(query) => plans::with_types_of_beginning(query)?,
        LogicalPlan::Aggregate(aggregate) => {
            plans::with_keys_below(aggregate, |input| Ok(bind_plan(input, server)?.data))?
        }
        other => other,
    };
    let texts = Texts::of(&plan, server);
    let schema = match plan.inputs().as_slice() {
        [] => plan.schema().as_ref().clone(),
        inputs => merge_schema(inputs),
    };
    let sorts = matches!(plan, LogicalPlan::Sort(_));
    let projects = matches!(plan, LogicalPlan::Projection(_));
    let names = NamePreserver::new(&plan);
    let bound = plan.map_expressions(|expression| {
        let name = names.save(&expression);
        let bound = expression.transform_up(|node| bind(node, &schema, &texts))?;
        let bound = match projects && plans::is_column(&bound.data) {
            true => bound,
            false => bound.transform_data(|expression| plans::rounded(expression, &schema))?,
        };
        Ok(bound.update_data(|expression| if sorts { expression } else { name.restore(expression) }))
    })?;
    // The type of a bound expression may be narrower than what it was planned with.
    bound.map_data(LogicalPlan::recompute_schema)
}

fn bind(expression: Expr, schema: &DFSchema, texts: &Texts) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(function) = &expression else { return Ok(Transformed::no(expression)) };
    let Some(call) = function.func.inner().downcast_ref::<ServerCall>() else {
        return Ok(Transformed::no(expression));
    };
    let [Expr::Literal(ScalarValue::Utf8(Some(name)), _), arguments @ ..] = function.args.as_slice() else {
        return internal_err!("a call without a name");
    };
    let operands = arguments
        .iter()
        .map(|argument| Argument::new(argument, schema, texts, &call.rules))
        .collect::<Result<Vec<_>>>()?;
    if let Some(native) = native::expression(name, &operands, schema, &call.rules)? {
        return Ok(Transformed::yes(native));
    }
    let mut inputs = Inputs::default();
    let mut typed = Vec::new();
    for operand in operands {
        typed.push(inputs.operand(operand, &call.rules).map_err(|refusal| unsupported(name, &refusal))?);
    }
    let typed = typed_call(name, typed, &call.rules).map_err(|refusal| unsupported(name, &refusal))?;
    let bound = BoundCall::expression(name, typed, inputs, &call.query);
    Ok(Transformed::yes(bound))
}

/// An operand of a call, with the server's type of it, if it has one.
pub(super) struct Argument {
    pub(super) expression: Expr,
    pub(super) kind: Result<Kind, Refusal>,
    pub(super) field: FieldRef,
}

impl Argument {
    fn new(expression: &Expr, schema: &DFSchema, texts: &Texts, rules: &Rules) -> Result<Argument> {
        let field = expression.to_field(schema)?.1;
        let kind = match expression {
            Expr::Literal(value, metadata)
                if metadata.as_ref().is_none_or(|metadata| !metadata.inner().contains_key(KIND)) =>
            {
                kind_of_literal(value, rules)
            }
            // The engine's aggregates and set operations say nothing of collations.
            _ if !field.metadata().contains_key(KIND) && field.data_type().is_string() => {
                texts.collating(expression).map_or_else(|| kind_of(&field), |own| Ok(Kind::Text(own)))
            }
            _ => kind_of(&field),
        };
        Ok(Argument { expression: expression.clone(), kind, field })
    }

    /// The literal, if it is one.
    pub(super) fn literal(&self) -> Option<&ScalarValue> {
        match &self.expression {
            Expr::Literal(value, _) => Some(value),
            _ => None,
        }
    }
}

/// The columns and other expressions of the engine that a bound expression reads.
#[derive(Default)]
pub(super) struct Inputs {
    pub(super) expressions: Vec<Expr>,
    /// Which of them may be zero dates.
    pub(super) dates: Vec<bool>,
    /// Texts of the bound expressions that were taken apart.
    pub(super) parts: Vec<String>,
}

impl Inputs {
    /// The operand over these inputs; a bound expression in it is taken apart, and evaluated as a part of the whole.
    fn operand(&mut self, argument: Argument, rules: &Rules) -> Result<Typed, Refusal> {
        if let Expr::Literal(value, _) = &argument.expression {
            return literal(value, argument.kind?)
                .map_err(|error| Refusal::new(format!("a literal: {error}")));
        }
        if let Expr::ScalarFunction(ScalarFunction { func, args }) = &argument.expression
            && let Some(bound) = func.inner().downcast_ref::<BoundCall>()
        {
            let slots: Vec<usize> = args
                .iter()
                .zip(&bound.dates)
                .map(|(input, is_date)| self.slot(input.clone(), *is_date))
                .collect();
            self.parts.push(bound.text.clone());
            return Ok(moved(bound.typed.clone(), &slots));
        }
        let kind = argument.kind?;
        let is_date = matches!(kind, Kind::Date | Kind::DateTime { .. } | Kind::Timestamp { .. })
            && has_zero_dates(&argument.expression);
        let slot = self.slot(argument.expression, is_date);
        Ok(input(slot, kind, rules))
    }

    fn slot(&mut self, expression: Expr, is_date: bool) -> usize {
        if let Some(at) = self.expressions.iter().position(|input| *input == expression) {
            return at;
        }
        self.expressions.push(expression);
        self.dates.push(is_date);
        self.expressions.len() - 1
    }
}

/// Only a column's NULL may be a zero date.
fn has_zero_dates(expression: &Expr) -> bool {
    matches!(expression, Expr::Column(_) | Expr::OuterReferenceColumn(..))
}

/// The expression with its inputs at other positions.
fn moved(mut typed: Typed, slots: &[usize]) -> Typed {
    typed.for_each_input(&mut |slot| *slot = slots.get(*slot).copied().unwrap_or(*slot));
    typed
}

impl Typed {
    fn for_each_input(&mut self, change: &mut impl FnMut(&mut usize)) {
        match &mut self.node {
            Node::Input(slot) => change(slot),
            Node::Literal(_) => {}
            Node::Call(_, operands) | Node::Logical(_, operands) | Node::Coalesce(operands) => {
                operands.iter_mut().for_each(|operand| operand.for_each_input(change));
            }
            Node::Stored(_, inner) | Node::Truth(inner) => inner.for_each_input(change),
            Node::Case(whens, otherwise) => {
                for (holds, result) in whens {
                    holds.for_each_input(change);
                    result.for_each_input(change);
                }
                if let Some(otherwise) = otherwise {
                    otherwise.for_each_input(change);
                }
            }
        }
    }
}
