//! ENUM and SET where values are compared: with texts, in MIN and MAX.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Expr, Operator, binary_expr};

use super::choice;
use super::comparing::{Comparing, Scope, refused};
use super::operators::{choice_and_other, extreme, in_list, is_order, keyed, text};

impl Scope {
    /// The sort key of what MIN or MAX looks for; `None` if it is compared as it is.
    pub(super) fn extreme_key(&self, expression: &Expr) -> Result<Option<Expr>> {
        let Comparing::Choice(of) = self.comparing(expression)? else { return self.key(expression) };
        match of.as_text() {
            Some(own) => keyed(expression.clone().unalias(), own),
            None => choice::check_order_of_texts(&of).map(|()| None),
        }
    }

    /// MIN and MAX by an index, which has ENUM and SET by their numbers.
    pub(super) fn by_index(&self, expression: Expr) -> Result<Transformed<Expr>> {
        expression.transform(|part| match part {
            Expr::AggregateFunction(mut function) => {
                if let (Some(choice), [text]) =
                    (extreme(function.func.name()), function.params.args.as_slice())
                    && let Comparing::Choice(of) = self.comparing(text)?
                {
                    of.check_numbers()?;
                    let number = choice::bytes_of_number(text.clone(), &of.definition);
                    function.params.args.push(number);
                    function.params.distinct = false;
                    function.func = choice.aggregate();
                    return Ok(Transformed::yes(Expr::AggregateFunction(function)));
                }
                Ok(Transformed::no(Expr::AggregateFunction(function)))
            }
            other => Ok(Transformed::no(other)),
        })
    }

    /// How an expression compares as a text.
    pub(super) fn as_text(&self, expression: &Expr) -> Result<Comparing> {
        Ok(match self.comparing(expression)? {
            Comparing::Choice(of) => of.as_text().cloned().map_or(Comparing::Choice(of), Comparing::As),
            other => other,
        })
    }

    /// An ENUM or SET that is compared with a text is one of those of its texts for which that holds.
    pub(super) fn choice_compared(&self, left: &Expr, op: Operator, right: &Expr) -> Result<Option<Expr>> {
        let (value, op, other, of) = match (self.comparing(left)?, self.comparing(right)?) {
            (Comparing::Choice(own), Comparing::Choice(others)) if own == others && !is_order(op) => {
                return Ok(Some(binary_expr(left.clone(), op, right.clone())));
            }
            (Comparing::Choice(own), Comparing::Choice(others))
                if own.as_text().is_some() && others.as_text().is_some() =>
            {
                return Ok(None);
            }
            (Comparing::Choice(own), Comparing::As(_))
                if own.as_text().is_some() && text(right).is_none() =>
            {
                return Ok(None);
            }
            (Comparing::As(_), Comparing::Choice(own)) if own.as_text().is_some() && text(left).is_none() => {
                return Ok(None);
            }
            (Comparing::Choice(own), Comparing::As(_)) => (left, op, right, own),
            (Comparing::As(_), Comparing::Choice(own)) => match op.swap() {
                Some(op) => (right, op, left, own),
                None => return Err(refused(choice_and_other())),
            },
            (Comparing::Choice(_), Comparing::Plainly | Comparing::Document)
            | (Comparing::Plainly | Comparing::Document, _) => return Ok(None),
            (Comparing::Choice(_), _) | (_, Comparing::Choice(_)) => return Err(refused(choice_and_other())),
            _ => return Ok(None),
        };
        let Some(other) = text(other) else { return Err(refused(choice_and_other())) };
        let holds: fn(std::cmp::Ordering) -> bool = match op {
            Operator::Lt => std::cmp::Ordering::is_lt,
            Operator::LtEq => std::cmp::Ordering::is_le,
            Operator::Gt => std::cmp::Ordering::is_gt,
            Operator::GtEq => std::cmp::Ordering::is_ge,
            Operator::Eq | Operator::NotEq => {
                let found = choice::texts(&of, |element| choice::equals(&of, element, other))?;
                return Ok(Some(in_list(value, found, op == Operator::NotEq)));
            }
            _ => return Err(refused(choice_and_other())),
        };
        let found = choice::texts(&of, |element| Ok(holds(choice::compare(&of, element, other)?)))?;
        Ok(Some(in_list(value, found, false)))
    }
}
