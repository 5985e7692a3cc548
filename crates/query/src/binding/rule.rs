//! The rule that binds calls to their operands.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use tanada_innodb::schema::Server;

use super::aggregates::of_server;
use super::bound::{BoundCall, input, literal, typed_call};
use super::call::ServerCall;
use super::field::{CARRIES, OWN_DIGITS, kind_of, kind_of_literal, width_of};
use super::origin::StoredNumbers;
use super::statement::StatementRules;
use super::{
    KIND, displayed, documents, native, own_digits, plans, set_operations, time_zone, unsupported, zero_dates,
};
use crate::collation::Texts;
use crate::expression::{Connection, Kind, Node, Origin, Refusal, Rules, Typed, shows_digits};
use crate::rules::is_set_operation;
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
        let statement = config.extensions.get::<StatementRules>();
        // What is above an aggregate is bound to its digits.
        let plan = plan.transform_up_with_subqueries(|node| {
            bind_plan(node, server, statement)?.transform_data(|node| of_server(node, config))
        });
        let plan = plans::shown(plan?.data)?;
        match statement {
            Some(statement) => own_digits::shown(time_zone::shown(plan, statement)?, statement),
            None => Ok(plan),
        }
    }
}

fn bind_plan(
    plan: LogicalPlan,
    server: Server,
    statement: Option<&StatementRules>,
) -> Result<Transformed<LogicalPlan>> {
    let plan = match displayed::read(plan, server == Server::MySql)? {
        LogicalPlan::Union(mut union) => {
            if let Some(statement) = statement {
                union.inputs = set_operations::united(union.inputs, statement)?;
            }
            plans::with_common_types(union)?
        }
        LogicalPlan::Join(join) if is_set_operation(&join) && statement.is_some() => match statement {
            Some(statement) => set_operations::joined(join, statement)?,
            None => LogicalPlan::Join(join),
        },
        LogicalPlan::RecursiveQuery(query) => plans::with_types_of_beginning(query)?,
        other => zero_dates::found(other, server)?,
    };
    let connection = statement.map_or_else(|| Connection::new(server), |own| own.rules().connection);
    let texts = Texts::of(&plan, connection);
    let schema = match plan.inputs().as_slice() {
        [] => plan.schema().as_ref().clone(),
        inputs => merge_schema(inputs),
    };
    let numbers = match server {
        Server::MySql => StoredNumbers::of(&plan),
        Server::MariaDb => StoredNumbers::default(),
    };
    let is_mysql = server == Server::MySql;
    let sorts = matches!(plan, LogicalPlan::Sort(_));
    let projects = matches!(plan, LogicalPlan::Projection(_));
    let names = NamePreserver::new(&plan);
    let bound = plan.map_expressions(|expression| {
        let name = names.save(&expression);
        let bound = expression.transform_up(|node| bind(node, &schema, &texts, &numbers, is_mysql))?;
        let bound = match projects && plans::is_column(&bound.data) {
            true => bound,
            false => bound.transform_data(|expression| plans::rounded(expression, &schema))?,
        };
        Ok(bound.update_data(|expression| if sorts { expression } else { name.restore(expression) }))
    })?;
    // The type of a bound expression may be narrower than what it was planned with.
    bound.map_data(LogicalPlan::recompute_schema)
}

fn bind(
    expression: Expr,
    schema: &DFSchema,
    texts: &Texts,
    numbers: &StoredNumbers,
    is_mysql: bool,
) -> Result<Transformed<Expr>> {
    if matches!(expression, Expr::ScalarSubquery(_) | Expr::InSubquery(_)) {
        return displayed::subquery(expression, schema, is_mysql).map(Transformed::yes);
    }
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
    if let Some(compared) = displayed::with_float(name, &operands, &call.rules)? {
        return Ok(Transformed::yes(compared));
    }
    if let Some(native) = native::expression(name, &operands, schema, &call.rules, &call.query)? {
        return Ok(Transformed::yes(native));
    }
    let carries = call.rules.mysql
        && (name == "average of" || operands.iter().any(|of| of.field.metadata().contains_key(CARRIES)));
    let collation = if call.rules.mysql { None } else { documents::collation(name, &operands, &call.rules)? };
    let mut inputs = Inputs::default();
    let mut typed = Vec::new();
    for operand in operands {
        let operand = documents::as_document(name, operand, &call.rules);
        if call.rules.mysql && operand.field.metadata().contains_key(OWN_DIGITS) && shows_digits(name) {
            // Directly in the call it is taken apart, and each branch is spelled in its own digits.
            if matches!(operand.expression, Expr::Column(_)) {
                let why = "digits after the point that depend on the server's plan; CAST the value";
                return Err(unsupported(name, &Refusal::new(why)));
            }
        }
        typed.push(
            inputs.operand(operand, &call.rules, numbers).map_err(|refusal| unsupported(name, &refusal))?,
        );
    }
    let typed = typed_call(name, typed, &call.rules).map_err(|refusal| unsupported(name, &refusal))?;
    Ok(Transformed::yes(match collation {
        Some(collation) if typed.kind == Kind::Json => {
            BoundCall::document(name, typed, inputs, &call.query, &collation)
        }
        _ if carries && matches!(typed.kind, Kind::Decimal { .. }) => {
            BoundCall::carrying(name, typed, inputs, &call.query)
        }
        _ => BoundCall::expression(name, typed, inputs, &call.query),
    }))
}

/// An operand of a call, with the server's type of it, if it has one.
#[derive(Clone)]
pub(super) struct Argument {
    pub(super) expression: Expr,
    pub(super) kind: Result<Kind, Refusal>,
    pub(super) field: FieldRef,
}

impl Argument {
    fn new(expression: &Expr, schema: &DFSchema, texts: &Texts, rules: &Rules) -> Result<Argument> {
        let field = expression.to_field(schema)?.1;
        if let Some(constant) = constant(expression, schema) {
            let kind = kind_of(&field);
            return Ok(Argument { expression: constant, kind, field });
        }
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

/// The value of a truth value of literals: the servers look at constants while they plan.
fn constant(expression: &Expr, schema: &DFSchema) -> Option<Expr> {
    let is_truth = |of: &Expr| {
        matches!(
            of,
            Expr::IsTrue(_)
                | Expr::IsNotTrue(_)
                | Expr::IsFalse(_)
                | Expr::IsNotFalse(_)
                | Expr::IsUnknown(_)
                | Expr::IsNotUnknown(_)
                | Expr::IsNull(_)
                | Expr::IsNotNull(_)
                | Expr::Not(_)
        )
    };
    // Comparisons of the engine's are not yet by their collations.
    let is_known = |of: &Expr| is_truth(of) || matches!(of, Expr::Literal(..)) || BoundCall::of(of).is_some();
    let has_other = expression.exists(|part| Ok(!is_known(part)));
    if !is_truth(expression) || has_other.unwrap_or(true) {
        return None;
    }
    let context = SimplifyContext::builder().with_schema(Arc::new(schema.clone())).build();
    match ExprSimplifier::new(context).simplify(expression.clone()) {
        Ok(literal @ Expr::Literal(..)) => Some(literal),
        _ => None,
    }
}

/// The columns and other expressions of the engine that a bound expression reads.
#[derive(Default)]
pub(super) struct Inputs {
    pub(super) expressions: Vec<Expr>,
    /// What each operand is: a literal, a bound expression that was taken apart, or an input. A function may keep a
    /// literal (the unit of EXTRACT) where `Debug` does not show it.
    pub(super) parts: Vec<String>,
}

impl Inputs {
    /// The operand over these inputs; a bound expression in it is taken apart, and evaluated as a part of the whole.
    fn operand(
        &mut self,
        argument: Argument,
        rules: &Rules,
        numbers: &StoredNumbers,
    ) -> Result<Typed, Refusal> {
        if let Expr::Literal(value, _) = &argument.expression {
            self.parts.push(format!("{value:?}"));
            let typed = literal(value, argument.kind?)
                .map_err(|error| Refusal::new(format!("a literal: {error}")))?;
            // In JSON TRUE is no number.
            let is_truth = matches!(value, ScalarValue::Boolean(Some(_)));
            return Ok(if is_truth { Typed::truth(typed) } else { typed });
        }
        if let Expr::ScalarFunction(ScalarFunction { func, args }) = &argument.expression
            && let Some(bound) = func.inner().downcast_ref::<BoundCall>()
        {
            let slots: Vec<usize> =
                args.iter().take(bound.inputs).map(|input| self.slot(input.clone())).collect();
            self.parts.push(format!("{} of {slots:?}", bound.text));
            return Ok(moved(bound.operand(), &slots));
        }
        let kind = argument.kind?;
        let is_truth = *argument.field.data_type() == DataType::Boolean
            && !matches!(argument.expression, Expr::Column(_) | Expr::OuterReferenceColumn(..));
        let origin = match &kind {
            Kind::Float | Kind::Double { decimals: None } if rules.mysql => {
                numbers.origin(&argument.expression)
            }
            _ => Origin::Stored,
        };
        let width = width_of(&argument.field);
        let is_text = documents::is_text(&argument.field, &kind);
        let slot = self.slot(argument.expression);
        self.parts.push(format!("input {slot}"));
        let typed = match origin {
            Origin::Stored if is_text => input(slot, kind, rules).without_document(),
            Origin::Stored => input(slot, kind, rules).with_width(width),
            Origin::Computed => {
                Typed::call(kind.clone(), vec![Typed { node: Node::Result(slot), kind }], |values| {
                    Ok(values[0].clone())
                })
            }
            Origin::Unknown => Typed { node: Node::Result(slot), kind },
        };
        Ok(if is_truth { Typed::truth(typed) } else { typed })
    }

    fn slot(&mut self, expression: Expr) -> usize {
        if let Some(at) = self.expressions.iter().position(|input| *input == expression) {
            return at;
        }
        self.expressions.push(expression);
        self.expressions.len() - 1
    }
}

/// The expression with its inputs at other positions.
fn moved(mut typed: Typed, slots: &[usize]) -> Typed {
    typed.for_each_input(&mut |slot| *slot = slots.get(*slot).copied().unwrap_or(*slot));
    typed
}

impl Typed {
    fn for_each_input(&mut self, change: &mut impl FnMut(&mut usize)) {
        match &mut self.node {
            Node::Input(slot, _) | Node::Result(slot) => change(slot),
            Node::Literal(_) => {}
            Node::Call(_, operands) | Node::Logical(_, operands) | Node::Coalesce(operands) => {
                operands.iter_mut().for_each(|operand| operand.for_each_input(change));
            }
            Node::Stored(_, inner) | Node::Branch(_, inner) | Node::Truth(inner) => {
                inner.for_each_input(change)
            }
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
