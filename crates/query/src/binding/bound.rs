//! A function that computes an expression of the server's row by row.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, NullArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use tanada_innodb::{RowSink, Server, Value};

use super::call::{is_condition, truth_field};
use super::field::{CARRIES, JSON_COLLATION, OWN_DIGITS, arrow_type, field_of};
use super::rule::Inputs;
use super::unsupported;
use crate::Error;
use crate::expression::{
    Datum, Kind, Node, Refusal, Rules, Typed, branch, call, datum_of, digits_of_type, noting, stored,
    value_of,
};
use crate::lookup::key::KeyColumn;
use crate::relation::ArrowSink;
use crate::session::context::QueryContext;

/// Digits of a word of MariaDB's decimals, of which quotients have whole ones.
const WORD_DIGITS: u8 = 9;
/// Sums of operands with more digits after the point go on with those digits alone, which leaves room for their whole
/// part.
const MAX_CARRIED_SCALE: u8 = 15;

/// A literal operand.
pub(super) fn literal(value: &ScalarValue, kind: Kind) -> Result<Typed> {
    let array = value.to_array()?;
    let datum = Column::new(&array)?.datum(0).map_err(|refusal| unsupported("a literal", &refusal))?;
    Ok(Typed { node: Node::Literal(datum), kind })
}

/// The operand at a position of the row; a TIMESTAMP is shown by the session's clock.
pub(super) fn input(slot: usize, kind: Kind, rules: &Rules) -> Typed {
    stored(slot, kind, rules)
}

/// Plans a call by the name that the syntax tree has for it.
pub(super) fn typed_call(name: &str, operands: Vec<Typed>, rules: &Rules) -> Result<Typed, Refusal> {
    call(name, operands, rules)
}

/// An expression over inputs, which are the arguments of the function.
#[derive(Debug)]
pub(crate) struct BoundCall {
    /// What it computes.
    pub(super) typed: Typed,
    /// As text, with the names of its parts: two expressions of the same text and inputs are the same.
    pub(super) text: String,
    /// Whether its text may have zeros before the number.
    has_unknown_text: bool,
    is_condition: bool,
    /// How many inputs there are.
    pub(super) inputs: usize,
    field: FieldRef,
    query: Arc<QueryContext>,
    signature: Signature,
}

impl BoundCall {
    /// The bound call that an expression is, if it is one.
    pub(super) fn of(expression: &Expr) -> Option<&BoundCall> {
        match expression {
            Expr::ScalarFunction(function) => function.func.inner().downcast_ref::<BoundCall>(),
            _ => None,
        }
    }

    /// What it computes, as an operand.
    pub(super) fn operand(&self) -> Typed {
        let typed = match &self.typed.node {
            Node::Branch(_, inner) if inner.kind == Kind::Year => inner.as_ref().clone(),
            _ => self.typed.clone(),
        };
        match self.has_unknown_text {
            true => Typed { kind: Kind::Padded { of: Box::new(typed.kind), width: None }, node: typed.node },
            false => typed,
        }
    }

    /// Whether its values have no more digits than its type shows.
    pub(super) fn is_rounded(&self) -> bool {
        let name = self.field.name();
        name.starts_with("cast:") || matches!(name.as_str(), "round" | "truncate" | "floor" | "ceil")
    }

    /// The operand of a sum with the digits that MariaDB carries on from quotients, and the digits that its type shows.
    pub(super) fn carried(expression: &Expr) -> Option<(Expr, u8)> {
        let bound = BoundCall::of(expression)?;
        let (Kind::Decimal { scale }, Expr::ScalarFunction(function)) = (&bound.typed.kind, expression)
        else {
            return None;
        };
        let kind = Kind::Decimal { scale: scale.saturating_add(WORD_DIGITS).max(2 * WORD_DIGITS) };
        if *scale > MAX_CARRIED_SCALE {
            return None;
        }
        let all = BoundCall {
            text: format!("{} with all digits", bound.text),
            has_unknown_text: false,
            is_condition: false,
            inputs: bound.inputs,
            field: Arc::new(field_of(bound.name(), &kind, true)),
            query: Arc::clone(&bound.query),
            signature: bound.signature.clone(),
            typed: Typed { node: bound.typed.node.clone(), kind },
        };
        Some((ScalarUDF::from(all).call(function.args.clone()), *scale))
    }

    /// A CASE as text, of which each branch has its own digits; `None` if all have those of its type. If it is not
    /// clear which are shown, a value that has others is refused.
    ///
    /// # Errors
    /// If branches are numbers with zeros before them, which are shown, too.
    pub(super) fn with_own_digits(expression: Expr, rules: &Rules, is_clear: bool) -> Result<Option<Expr>> {
        let Expr::ScalarFunction(function) = &expression else { return Ok(None) };
        let Some(bound) = BoundCall::of(&expression) else { return Ok(None) };
        let (Kind::Decimal { scale }, Node::Case(..)) = (&bound.typed.kind, &bound.typed.node) else {
            return Ok(None);
        };
        if bound.has_unknown_text {
            let why = Refusal::new("a column with ZEROFILL among numbers of another type");
            return Err(unsupported(bound.name(), &why));
        }
        if !has_own_digits(&bound.typed, &bound.typed.kind) {
            return Ok(None);
        }
        let Ok(own) = typed_call("concat", vec![bound.typed.clone()], rules) else { return Ok(None) };
        let (case, kind) = (Kind::Decimal { scale: *scale }, own.kind.clone());
        let typed = match is_clear {
            true => own,
            false => Typed::call(kind, vec![own, bound.typed.clone()], move |values| {
                digits_of_type(&values[0], &values[1], &case)
            }),
        };
        let text = BoundCall {
            text: format!("{} in its own digits", bound.text),
            has_unknown_text: false,
            is_condition: false,
            inputs: bound.inputs,
            field: Arc::new(field_of(bound.name(), &typed.kind, true)),
            query: Arc::clone(&bound.query),
            signature: bound.signature.clone(),
            typed,
        };
        Ok(Some(ScalarUDF::from(text).call(function.args.clone())))
    }

    /// The expression over `inputs`.
    pub(super) fn expression(name: &str, typed: Typed, inputs: Inputs, query: &Arc<QueryContext>) -> Expr {
        // The year 0 is shown as 0 out of a CASE, though its text has four digits.
        let typed = match (&typed.kind, &typed.node) {
            (Kind::Year, Node::Case(..)) => branch(typed, &Kind::Int { unsigned: true }, false),
            _ => typed,
        };
        let (typed, has_unknown_text) = match typed.kind {
            Kind::Padded { of, .. } => (Typed { kind: *of, node: typed.node }, true),
            kind => (Typed { kind, node: typed.node }, false),
        };
        let field = if is_condition(name) { truth_field(name) } else { field_of(name, &typed.kind, true) };
        BoundCall::with_field(field, name, typed, has_unknown_text, inputs, query)
    }

    /// The same, a decimal of MySQL that other calls compute with all of its digits.
    pub(super) fn carrying(name: &str, typed: Typed, inputs: Inputs, query: &Arc<QueryContext>) -> Expr {
        let mut field = field_of(name, &typed.kind, true);
        field.metadata_mut().insert(CARRIES.to_string(), String::new());
        BoundCall::with_field(field, name, typed, false, inputs, query)
    }

    /// The same, a document of MariaDB that compares by a collation.
    pub(super) fn document(
        name: &str,
        typed: Typed,
        inputs: Inputs,
        query: &Arc<QueryContext>,
        collation: &str,
    ) -> Expr {
        let mut field = field_of(name, &typed.kind, true);
        field.metadata_mut().insert(JSON_COLLATION.to_string(), collation.to_string());
        BoundCall::with_field(field, name, typed, false, inputs, query)
    }

    fn with_field(
        field: Field,
        name: &str,
        typed: Typed,
        has_unknown_text: bool,
        inputs: Inputs,
        query: &Arc<QueryContext>,
    ) -> Expr {
        let is_condition = is_condition(name);
        let mut field = field;
        if matches!((&typed.kind, &typed.node), (Kind::Decimal { .. }, Node::Case(..)))
            && has_own_digits(&typed, &typed.kind)
        {
            field.metadata_mut().insert(OWN_DIGITS.to_string(), String::new());
        }
        let function = BoundCall {
            text: format!("{name} {typed:?} {:?}", inputs.parts),
            typed,
            has_unknown_text,
            is_condition,
            inputs: inputs.expressions.len(),
            field: Arc::new(field),
            query: Arc::clone(query),
            signature: Signature::variadic_any(Volatility::Immutable),
        };
        let inputs = match inputs.expressions.is_empty() {
            // A function of nothing is computed once for a batch without rows.
            true => vec![Expr::Literal(ScalarValue::Null, None)],
            false => inputs.expressions,
        };
        ScalarUDF::from(function).call(inputs)
    }

    fn array(&self, columns: &[Column], rows: usize) -> Result<ArrayRef> {
        let refused = |refusal: &Refusal| unsupported(self.name(), refusal);
        let mut row = vec![Datum::Null; columns.len()];
        let mut value = |at: usize| -> Result<Datum, Refusal> {
            for (slot, column) in row.iter_mut().zip(columns) {
                *slot = column.datum(at)?;
            }
            self.typed.value(&row)
        };
        if self.is_condition {
            let truths = (0..rows).map(|at| {
                value(at)
                    .and_then(|datum| datum.condition(&self.typed.kind))
                    .map_err(|refusal| refused(&refusal))
            });
            return Ok(Arc::new(truths.collect::<Result<BooleanArray>>()?));
        }
        if self.typed.kind == Kind::Null {
            return Ok(Arc::new(NullArray::new(rows)));
        }
        let schema = Arc::new(Schema::new(vec![Arc::clone(&self.field)]));
        let mut sink = ArrowSink::new(&schema, &[0], !self.query.orders_dates());
        for at in 0..rows {
            let value = value(at).and_then(|datum| value_of(datum, &self.typed.kind));
            sink.push(0, value.map_err(|refusal| refused(&refusal))?).map_err(Error::from)?;
            sink.end_row();
        }
        Ok(Arc::clone(sink.finish()?.column(0)))
    }
}

/// Whether a branch of a CASE has other digits than its type.
fn has_own_digits(of: &Typed, kind: &Kind) -> bool {
    match &of.node {
        Node::Case(whens, otherwise) => {
            let mut results = whens.iter().map(|(_, result)| result).chain(otherwise.as_deref());
            results.any(|result| has_own_digits(result, kind))
        }
        Node::Call(_, operands) => operands.iter().any(|operand| operand.kind != *kind),
        Node::Branch(_, operand) => operand.kind != *kind || has_own_digits(operand, kind),
        _ => false,
    }
}

impl PartialEq for BoundCall {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.field == other.field && Arc::ptr_eq(&self.query, &other.query)
    }
}

impl Eq for BoundCall {}

impl Hash for BoundCall {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl ScalarUDFImpl for BoundCall {
    fn name(&self) -> &str {
        self.field.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    /// The literals in it are part of the name: two calls with others are not the same column.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let args: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(format!("{}[{}]({})", self.name(), self.text, args.join(",")))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { arguments.number_rows };
        let columns = arguments.args.iter().take(self.inputs);
        let columns =
            columns.map(|argument| Column::new(&argument.to_array(rows)?)).collect::<Result<Vec<_>>>()?;
        let mysql = self.query.options().server == Server::MySql;
        let (array, notes) = noting(mysql, || self.array(&columns, rows));
        self.query.note(notes, constant.then_some(self.text.as_str()));
        let array = array?;
        debug_assert!(
            self.is_condition || *array.data_type() == arrow_type(&self.typed.kind),
            "the type of a result is that of its field"
        );
        Ok(match constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?),
            false => ColumnarValue::Array(array),
        })
    }
}

/// Values of an input.
enum Column {
    Nulls,
    Values(KeyColumn),
}

impl Column {
    fn new(array: &ArrayRef) -> Result<Column> {
        match array.data_type() {
            DataType::Null => Ok(Column::Nulls),
            _ => Ok(Column::Values(KeyColumn::new(array, None)?)),
        }
    }

    fn datum(&self, row: usize) -> Result<Datum, Refusal> {
        match self {
            Column::Nulls => Ok(Datum::Null),
            Column::Values(values) => datum_of(&values.value(row).unwrap_or(Value::Null)),
        }
    }
}
