//! Expressions whose texts are compared: rewritten to compare sort keys.

use datafusion::arrow::datatypes::{DataType, Fields};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, Case, InList, InSubquery, Like, SetComparison, Sort,
};
use datafusion::logical_expr::{
    Between, BinaryExpr, Expr, ExprSchemable, LogicalPlanBuilder, Operator, Subquery, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, binary_expr, cast, lit,
};

use super::chosen::Choice;
use super::comparing::{Comparing, Scope, columns_of, is_text, refused};
use super::{choice, document_key, like, sort_key};
use crate::expression::{Collating, KeyOf, NUMERIC, Refusal};
use crate::functions::{GROUP_CONCAT, JSON_ARRAYAGG};

/// Name of the column of keys in a subquery.
const KEY_COLUMN: &str = "sort_key";

impl Scope {
    /// The expression over sort keys where it compares texts.
    pub(super) fn rewritten(&self, expression: Expr) -> Result<Transformed<Expr>> {
        expression.transform_up(|node| self.rewritten_node(node))
    }

    fn rewritten_node(&self, expression: Expr) -> Result<Transformed<Expr>> {
        match expression {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
                self.check_rows(&left)?;
                if let Some(chosen) = self.choice_compared(&left, op, &right)? {
                    return Ok(Transformed::yes(chosen));
                }
                match self.keys([&*left, &*right], symbol(op))? {
                    Some([left, right]) => Ok(Transformed::yes(binary_expr(left, op, right))),
                    None => Ok(Transformed::no(binary_expr(*left, op, *right))),
                }
            }
            Expr::Between(between) if matches!(self.comparing(&between.expr)?, Comparing::Choice(_)) => {
                let low = binary_expr((*between.expr).clone(), Operator::GtEq, *between.low);
                let high = binary_expr(*between.expr, Operator::LtEq, *between.high);
                let both = self.rewritten(low.and(high))?.data;
                Ok(Transformed::yes(if between.negated { Expr::Not(Box::new(both)) } else { both }))
            }
            Expr::Between(between) => self.between(between),
            Expr::InList(list) => self.in_list(list),
            Expr::SetComparison(comparison) => self.set_comparison(comparison),
            Expr::Like(like) => self.like(like),
            Expr::Case(case) if case.expr.is_some() => self.case(case),
            Expr::InSubquery(within) => self.in_subquery(within),
            Expr::AggregateFunction(aggregate) => self.aggregate(aggregate),
            Expr::WindowFunction(mut window) => {
                let params = &mut window.params;
                let mut changed = false;
                for key in &mut params.partition_by {
                    changed |= self.replace_by_key(key)?;
                }
                for sort in &mut params.order_by {
                    changed |= self.replace_by_rank(&mut sort.expr, KeyOf::Peers)?;
                }
                if changed || self.is_without_distances(&params.order_by)? {
                    params.window_frame = by_peers(params.window_frame.clone());
                    changed = true;
                }
                if let Some(choice) = extreme(window.fun.name())
                    && let [text] = params.args.as_slice()
                    && let Some(key) = self.extreme_key(text)?
                {
                    window.fun = WindowFunctionDefinition::AggregateUDF(choice.aggregate());
                    params.args.push(key);
                    changed = true;
                }
                Ok(Transformed::new_transformed(Expr::WindowFunction(window), changed))
            }
            other => Ok(Transformed::no(other)),
        }
    }

    /// The sort key of `expression` in GROUP BY; `None` if it is compared as it is.
    pub(super) fn key(&self, expression: &Expr) -> Result<Option<Expr>> {
        let own = match self.comparing(expression)? {
            Comparing::Plainly => return Ok(None),
            // What is equal to an element of an ENUM or SET is that element.
            Comparing::Choice(of) => return of.check_numbers().map(|()| None),
            Comparing::Document => {
                return Ok(Some(document_key::key_of(expression.clone().unalias(), KeyOf::Value)));
            }
            Comparing::As(own) => own,
            Comparing::Unknown => return Err(refused(unknown(expression))),
        };
        keyed(expression.clone().unalias(), &own)
    }

    /// Whether it is the text of numbers or dates.
    fn is_number(&self, expression: &Expr) -> Result<bool> {
        Ok(matches!(self.comparing(expression)?, Comparing::As(own) if own.strength == NUMERIC))
    }

    fn replace_by_key(&self, expression: &mut Expr) -> Result<bool> {
        let key = self.key(expression)?;
        let is_some = key.is_some();
        if let Some(key) = key {
            *expression = key;
        }
        Ok(is_some)
    }

    /// Whether rows are in an order of values that the engine has no distances of.
    fn is_without_distances(&self, keys: &[Sort]) -> Result<bool> {
        for key in keys {
            let data_type = key.expr.get_type(&self.schema)?;
            if data_type.is_binary() || matches!(data_type, DataType::BinaryView | DataType::Duration(_)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Replaces an expression of ORDER BY by what it is ordered by, a document by its key.
    pub(super) fn replace_by_rank(&self, expression: &mut Expr, of: KeyOf) -> Result<bool> {
        match self.comparing(expression)? {
            Comparing::Document => {
                *expression = document_key::key_of(expression.clone().unalias(), of);
                Ok(true)
            }
            Comparing::Choice(of) => {
                of.check_numbers()?;
                *expression = choice::number_of(expression.clone(), &of.definition);
                Ok(true)
            }
            _ => self.replace_by_key(expression),
        }
    }

    /// The keys of operands that are compared with each other; `None` if they are no texts or compare by bytes.
    pub(super) fn keys<const N: usize>(
        &self,
        operands: [&Expr; N],
        operation: &str,
    ) -> Result<Option<[Expr; N]>> {
        let keys = self.keys_of(&operands, operation)?;
        Ok(keys.and_then(|keys| keys.try_into().ok()))
    }

    fn keys_of(&self, operands: &[&Expr], operation: &str) -> Result<Option<Vec<Expr>>> {
        let mut common: Option<Collating> = None;
        for operand in operands.iter().filter(|operand| !is_null(operand)) {
            let own = match self.comparing(operand)? {
                Comparing::Plainly | Comparing::Document => return Ok(None),
                Comparing::Choice(own) => match own.as_text() {
                    Some(collating) => collating.clone(),
                    None => return Ok(None),
                },
                Comparing::As(own) => own,
                Comparing::Unknown => return Err(refused(unknown(operand))),
            };
            common = Some(match common {
                None => own,
                Some(common) => common.compared(&own, operation).map_err(refused)?,
            });
        }
        let Some(common) = common else { return Ok(None) };
        let keys: Vec<Option<Expr>> =
            operands.iter().map(|operand| keyed((*operand).clone(), &common)).collect::<Result<_>>()?;
        Ok(keys.into_iter().collect())
    }

    fn between(&self, between: Between) -> Result<Transformed<Expr>> {
        match self.keys([&*between.expr, &*between.low, &*between.high], "BETWEEN")? {
            Some([value, low, high]) => Ok(Transformed::yes(Expr::Between(Between::new(
                Box::new(value),
                between.negated,
                Box::new(low),
                Box::new(high),
            )))),
            None => Ok(Transformed::no(Expr::Between(between))),
        }
    }

    fn in_list(&self, list: InList) -> Result<Transformed<Expr>> {
        self.check_rows(&list.expr)?;
        let texts: Option<Vec<&str>> = list.list.iter().map(text).collect();
        if let Comparing::Choice(of) = self.comparing(&list.expr)?
            && (texts.is_some() || of.as_text().is_none())
        {
            let Some(texts) = texts else { return Err(refused(choice_and_other())) };
            let mut found = choice::texts(&of, |element| {
                texts.iter().try_fold(false, |any, text| Ok(any || choice::equals(&of, element, text)?))
            })?;
            // The list stays where nothing is found, for its NULLs.
            found.extend(texts.iter().map(|text| (*text).to_string()));
            let items = found.into_iter().map(lit).collect();
            return Ok(Transformed::yes(Expr::InList(InList::new(list.expr, items, list.negated))));
        }
        let operands: Vec<&Expr> = std::iter::once(list.expr.as_ref()).chain(&list.list).collect();
        match self.keys_of(&operands, "IN")? {
            Some(mut keys) => {
                let items = keys.split_off(1);
                let value = keys.pop().map_or(list.expr, Box::new);
                Ok(Transformed::yes(Expr::InList(InList::new(value, items, list.negated))))
            }
            None => Ok(Transformed::no(Expr::InList(list))),
        }
    }

    /// Replaces the texts in rows of values by their keys.
    fn replace_in_rows(&self, expression: &mut Expr) -> Result<bool> {
        if !matches!(expression.get_type(&self.schema)?, DataType::Struct(_)) {
            return Ok(false);
        }
        let with_keys = |node: Expr| match node {
            Expr::ScalarFunction(mut function) if function.name() == "struct" => {
                let mut changed = false;
                for part in &mut function.args {
                    changed |= self.replace_by_key(part)?;
                    // Elements of an ENUM or SET differ by their bytes.
                    if matches!(self.comparing(part)?, Comparing::Choice(_)) {
                        *part = cast(part.clone(), DataType::Binary);
                        changed = true;
                    }
                }
                Ok(Transformed::new_transformed(Expr::ScalarFunction(function), changed))
            }
            other => Ok(Transformed::no(other)),
        };
        let rewritten = expression.clone().transform_up(with_keys)?;
        *expression = rewritten.data;
        self.check_rows(expression)?;
        Ok(rewritten.transformed)
    }

    /// Rows that are compared part by part are compared by bytes.
    fn check_rows(&self, row: &Expr) -> Result<()> {
        let has_text = |fields: &Fields| fields.iter().any(|field| is_text(field.data_type()));
        match row.get_type(&self.schema)? {
            DataType::Struct(fields) if has_text(&fields) => {
                Err(refused(Refusal::new("rows of texts are compared; compare their parts")))
            }
            _ => Ok(()),
        }
    }

    fn set_comparison(&self, comparison: SetComparison) -> Result<Transformed<Expr>> {
        let keys = self.keyed_with(&comparison.expr, &comparison.subquery)?;
        let Some((key, subquery)) = keys else { return Ok(Transformed::no(Expr::SetComparison(comparison))) };
        let expr = Box::new(key);
        Ok(Transformed::yes(Expr::SetComparison(SetComparison { expr, subquery, ..comparison })))
    }

    fn like(&self, like: Like) -> Result<Transformed<Expr>> {
        if let (Comparing::Choice(of), Some(pattern)) = (self.comparing(&like.expr)?, text(&like.pattern)) {
            let escape = like.escape_char.or(Some('\\'));
            let found = choice::texts(&of, |element| choice::like(&of, element, pattern, escape))?;
            return Ok(Transformed::yes(in_list(&like.expr, found, like.negated)));
        }
        let common = match (self.as_text(&like.expr)?, self.as_text(&like.pattern)?) {
            (Comparing::As(text), Comparing::As(pattern)) => {
                text.compared(&pattern, "like").map_err(refused)?
            }
            (Comparing::Unknown, _) | (_, Comparing::Unknown) => return Err(refused(unknown(&like.expr))),
            _ => return Ok(Transformed::no(Expr::Like(like))),
        };
        let name = known_name(&common)?;
        let matched = like::call(*like.expr, *like.pattern, like.escape_char.or(Some('\\')), name);
        Ok(Transformed::yes(if like.negated { Expr::Not(Box::new(matched)) } else { matched }))
    }

    /// `CASE a WHEN b` compares as `a = b` by the collation of all.
    fn case(&self, case: Case) -> Result<Transformed<Expr>> {
        let Some(operand) = case.expr.as_deref() else { return Ok(Transformed::no(Expr::Case(case))) };
        let whens = case.when_then_expr.iter().map(|(when, _)| when.as_ref());
        let operands: Vec<&Expr> = std::iter::once(operand).chain(whens).collect();
        let Some(mut keys) = self.keys_of(&operands, "case")? else {
            return Ok(Transformed::no(Expr::Case(case)));
        };
        let whens = keys.split_off(1);
        let results = case.when_then_expr.into_iter().map(|(_, result)| result);
        Ok(Transformed::yes(Expr::Case(Case {
            expr: keys.pop().map(Box::new),
            when_then_expr: whens.into_iter().map(Box::new).zip(results).collect(),
            else_expr: case.else_expr,
        })))
    }

    fn in_subquery(&self, within: InSubquery) -> Result<Transformed<Expr>> {
        let Some((key, subquery)) = self.keyed_with(&within.expr, &within.subquery)? else {
            return Ok(Transformed::no(Expr::InSubquery(within)));
        };
        Ok(Transformed::yes(Expr::InSubquery(InSubquery::new(Box::new(key), subquery, within.negated))))
    }

    /// The keys of an expression and of a subquery's column that are compared; `None` if they compare as they are.
    fn keyed_with(&self, expression: &Expr, subquery: &Subquery) -> Result<Option<(Expr, Subquery)>> {
        self.check_rows(expression)?;
        let plan = &subquery.subquery;
        let inner = columns_of(plan, self.connection)?.into_iter().next().unwrap_or(Comparing::Unknown);
        let inner = match inner {
            Comparing::Choice(of) if self.comparing(expression)? != Comparing::Choice(of.clone()) => {
                of.as_text().cloned().map_or(Comparing::Choice(of), Comparing::As)
            }
            other => other,
        };
        let own = match (self.comparing(expression)?, &inner) {
            (Comparing::Choice(of), Comparing::As(_)) => {
                of.as_text().cloned().map_or(Comparing::Choice(of), Comparing::As)
            }
            (other, _) => other,
        };
        let common = match (own, inner) {
            (Comparing::As(own), Comparing::As(inner)) => own.compared(&inner, "=").map_err(refused)?,
            (Comparing::Unknown, _) | (_, Comparing::Unknown) => return Err(refused(unknown(expression))),
            (Comparing::Document, Comparing::Document) => {
                let column = Expr::Column(Column::from(plan.schema().qualified_field(0)));
                let keys = [expression.clone(), column].map(|of| document_key::key_of(of, KeyOf::Value));
                return with_keys(keys, subquery).map(Some);
            }
            (Comparing::Document, _) | (_, Comparing::Document) => {
                return Err(refused(Refusal::new("a document is compared with what is none in a subquery")));
            }
            (Comparing::Choice(own), Comparing::Choice(inner)) if own == inner => return Ok(None),
            (Comparing::Choice(_), _) | (_, Comparing::Choice(_)) => return Err(refused(choice_and_other())),
            _ => return Ok(None),
        };
        let column = Expr::Column(Column::from(plan.schema().qualified_field(0)));
        let (Some(key), Some(inner)) = (keyed(expression.clone(), &common)?, keyed(column, &common)?) else {
            return Ok(None);
        };
        with_keys([key, inner], subquery).map(Some)
    }

    fn aggregate(&self, mut aggregate: AggregateFunction) -> Result<Transformed<Expr>> {
        let params: &mut AggregateFunctionParams = &mut aggregate.params;
        let mut changed = false;
        let keeps_null = matches!(aggregate.func.name(), GROUP_CONCAT | JSON_ARRAYAGG);
        for Sort { expr, .. } in &mut params.order_by {
            // The servers keep NULL as an empty text where aggregates have an order.
            let empty = match self.comparing(expr)? {
                Comparing::As(own) if keeps_null => keyed(lit(""), &own)?,
                _ => None,
            };
            if self.comparing(expr)? == Comparing::Document {
                return Err(refused(Refusal::new("an aggregate in the order of documents")));
            }
            changed |= self.replace_by_rank(expr, KeyOf::Order)?;
            if let Some(empty) = empty {
                *expr = coalesce(vec![expr.clone(), empty]);
            }
        }
        if let Some(choice) = extreme(aggregate.func.name()) {
            if let [text] = params.args.as_slice()
                && let Some(key) = self.extreme_key(text)?
            {
                params.args.push(key);
                params.distinct = false;
                aggregate.func = choice.aggregate();
                changed = true;
            }
        } else if params.distinct && aggregate.func.name() == GROUP_CONCAT {
            if let [text, ..] = params.args.as_slice()
                && self.comparing(text)? == Comparing::Document
            {
                return Err(refused(Refusal::new("GROUP_CONCAT(DISTINCT) of documents")));
            }
            if let [text, _] = params.args.as_slice()
                && !self.is_number(text)?
                && let Some(key) = self.key(text)?
            {
                params.args.push(key);
                changed = true;
            }
        } else if params.distinct {
            for argument in &mut params.args {
                match aggregate.func.name() {
                    "count" => {
                        changed |= self.replace_by_key(argument)?;
                        changed |= self.replace_in_rows(argument)?;
                    }
                    // Digits compare by their bytes.
                    _ if self.is_number(argument)? => {}
                    _ if self.key(argument)?.is_some() => {
                        return Err(refused(Refusal::new(format!(
                            "{}(DISTINCT) of texts that compare by collation",
                            aggregate.func.name()
                        ))));
                    }
                    _ => {}
                }
            }
        }
        Ok(Transformed::new_transformed(Expr::AggregateFunction(aggregate), changed))
    }
}

/// A key, and a subquery of keys.
fn with_keys([key, inner]: [Expr; 2], subquery: &Subquery) -> Result<(Expr, Subquery)> {
    let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone());
    let keys = plan.project([inner.alias(KEY_COLUMN)])?.build()?;
    Ok((key, Subquery { subquery: keys.into(), ..subquery.clone() }))
}

/// The key of `expression` in a collation; `None` if it compares by bytes.
pub(super) fn keyed(expression: Expr, own: &Collating) -> Result<Option<Expr>> {
    match own.collation.as_deref() {
        // UTF-8 is in the order of its code points.
        Some("binary" | "utf8mb4_nopad_bin" | "utf8mb3_nopad_bin" | "utf8mb4_0900_bin") => Ok(None),
        _ => {
            let name = known_name(own)?;
            let collation = own.known().map_err(refused)?;
            if let (Some(collation), Some(text)) = (collation, text(&expression))
                && !collation.holds(text)
            {
                let charset = own.charset.as_deref().unwrap_or("its character set");
                return Err(refused(Refusal::new(format!("Cannot convert string '{text}' to {charset}"))));
            }
            Ok(collation.map(|collation| sort_key::key_of(expression, collation, name)))
        }
    }
}

/// The name of a collation whose order is known.
fn known_name(own: &Collating) -> Result<&str> {
    own.known().map_err(refused)?;
    own.collation
        .as_deref()
        .ok_or_else(|| refused(Refusal::new("a text of an unknown collation is compared")))
}

fn unknown(expression: &Expr) -> Refusal {
    Refusal::new(format!(
        "{} is compared, whose collation is not known; name one by COLLATE",
        expression.human_display()
    ))
}

/// A frame from and to peers or the partition's ends, without the values that RANGE computes with: keys have none.
fn by_peers(frame: WindowFrame) -> WindowFrame {
    let is_plain = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => true,
        WindowFrameBound::Preceding(count) | WindowFrameBound::Following(count) => count.is_null(),
    };
    match frame.units {
        WindowFrameUnits::Range if is_plain(&frame.start_bound) && is_plain(&frame.end_bound) => {
            let unbounded = |bound: WindowFrameBound| match bound {
                WindowFrameBound::Preceding(_) => WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
                WindowFrameBound::Following(_) => WindowFrameBound::Following(ScalarValue::UInt64(None)),
                WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
            };
            let (start, end) = (unbounded(frame.start_bound), unbounded(frame.end_bound));
            WindowFrame::new_bounds(WindowFrameUnits::Groups, start, end)
        }
        _ => frame,
    }
}

/// Whether an aggregate is the least or the greatest value.
pub(super) fn extreme(name: &str) -> Option<Choice> {
    match name {
        "min" => Some(Choice::Least),
        "max" => Some(Choice::Greatest),
        _ => None,
    }
}

pub(super) fn choice_and_other() -> Refusal {
    Refusal::new("an ENUM or SET is compared with what is no literal; compare it with literals")
}

/// The text of a literal.
pub(super) fn text(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}

/// Whether `value` is one of these texts.
pub(super) fn in_list(value: &Expr, texts: Vec<String>, negated: bool) -> Expr {
    match texts.is_empty() {
        // NULL where the value is.
        true if negated => binary_expr(value.clone(), Operator::Eq, value.clone()),
        true => binary_expr(value.clone(), Operator::NotEq, value.clone()),
        false => {
            Expr::InList(InList::new(Box::new(value.clone()), texts.into_iter().map(lit).collect(), negated))
        }
    }
}

fn is_null(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(value, _) if value.is_null())
}

fn is_comparison(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

pub(super) fn is_order(operator: Operator) -> bool {
    matches!(operator, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

fn symbol(operator: Operator) -> &'static str {
    match operator {
        Operator::NotEq => "<>",
        Operator::Lt => "<",
        Operator::LtEq => "<=",
        Operator::Gt => ">",
        Operator::GtEq => ">=",
        Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => "<=>",
        _ => "=",
    }
}
