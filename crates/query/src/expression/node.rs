//! Planned expressions, and their evaluation.

use std::fmt;
use std::sync::Arc;

use super::conversions::converted;
use super::datum::Datum;
use super::{Kind, Refusal};

/// Computes a value from those of the operands.
pub(crate) type Compute = Arc<dyn Fn(&[Datum]) -> Result<Datum, Refusal> + Send + Sync>;

/// An expression with its type.
#[derive(Debug, Clone)]
pub(crate) struct Typed {
    pub node: Node,
    pub kind: Kind,
}

/// How wide an integer is, which decides what it becomes beside a FLOAT.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) enum Width {
    /// Up to 24 bits, and a YEAR.
    Short,
    /// INT.
    Integer,
    /// BIGINT, literals, and what is computed.
    Long,
}

impl Width {
    /// The width of an integer of so many bytes.
    pub(crate) fn of_bytes(bytes: u8) -> Width {
        match bytes {
            ..=3 => Width::Short,
            4 => Width::Integer,
            _ => Width::Long,
        }
    }
}

#[derive(Clone)]
pub(crate) enum Node {
    /// A position in the row, with the width of its type if it is an integer.
    Input(usize, Width),
    /// A position in the row whose FLOAT or DOUBLE may be no column's.
    Result(usize),
    Literal(Datum),
    /// All operands are evaluated.
    Call(Compute, Vec<Typed>),
    /// An operand of a CASE or COALESCE as their common type.
    Branch(Compute, Box<Typed>),
    /// A value as a type of columns stores it: a virtual column inside of another, a CAST to FLOAT.
    Stored(Compute, Box<Typed>),
    /// The first that is not false (AND: `false`) or not true (OR: `true`).
    Logical(bool, Vec<Typed>),
    /// The result of the first condition that holds.
    Case(Vec<(Typed, Typed)>, Option<Box<Typed>>),
    /// The first that is not NULL.
    Coalesce(Vec<Typed>),
    /// What is true or false, as JSON tells from 1 and 0.
    Truth(Box<Typed>),
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Input(slot, _) => write!(f, "input {slot}"),
            Node::Result(slot) => write!(f, "result {slot}"),
            Node::Literal(datum) => write!(f, "{datum:?}"),
            Node::Call(_, operands) => write!(f, "call{operands:?}"),
            Node::Stored(_, inner) => write!(f, "stored {inner:?}"),
            Node::Branch(_, inner) => write!(f, "call[{inner:?}]"),
            Node::Logical(until, operands) => write!(f, "until {until} {operands:?}"),
            Node::Case(whens, otherwise) => write!(f, "case {whens:?} else {otherwise:?}"),
            Node::Coalesce(operands) => write!(f, "coalesce {operands:?}"),
            Node::Truth(inner) => write!(f, "{inner:?}"),
        }
    }
}

impl Typed {
    /// A function of `operands`.
    pub(crate) fn call(
        kind: Kind,
        operands: Vec<Typed>,
        compute: impl Fn(&[Datum]) -> Result<Datum, Refusal> + Send + Sync + 'static,
    ) -> Typed {
        Typed { node: Node::Call(Arc::new(compute), operands), kind }
    }

    /// The same, as an integer of this width.
    pub(crate) fn with_width(self, width: Width) -> Typed {
        match self.node {
            Node::Input(slot, _) => Typed { node: Node::Input(slot, width), ..self },
            node => Typed { node, ..self },
        }
    }

    /// The same, a text that is known to be no document.
    pub(crate) fn without_document(self) -> Typed {
        let compute: Compute = Arc::new(|values| Ok(values[0].clone()));
        Typed { kind: self.kind.clone(), node: Node::Branch(compute, Box::new(self)) }
    }

    /// How wide the type of its integers is.
    pub(super) fn width(&self) -> Width {
        let widest = |of: &mut dyn Iterator<Item = &Typed>| {
            let widths = of.filter(|of| of.kind != Kind::Null).map(Typed::width);
            widths.fold(Width::Short, |widest, width| if width > widest { width } else { widest })
        };
        match &self.node {
            _ if self.kind == Kind::Year => Width::Short,
            Node::Input(_, width) => *width,
            Node::Branch(_, inner) => inner.width(),
            Node::Coalesce(operands) => widest(&mut operands.iter()),
            Node::Case(whens, otherwise) => {
                widest(&mut whens.iter().map(|(_, result)| result).chain(otherwise.as_deref()))
            }
            _ => Width::Long,
        }
    }

    /// The same, as what is true or false.
    pub(crate) fn truth(of: Typed) -> Typed {
        let kind = of.kind.clone();
        Typed { node: Node::Truth(Box::new(of)), kind }
    }

    /// Whether no column is in it.
    pub(super) fn is_constant(&self) -> bool {
        match &self.node {
            Node::Literal(_) => true,
            Node::Input(..) | Node::Result(_) => false,
            Node::Call(_, operands) | Node::Logical(_, operands) | Node::Coalesce(operands) => {
                operands.iter().all(Typed::is_constant)
            }
            Node::Stored(_, inner) | Node::Branch(_, inner) | Node::Truth(inner) => inner.is_constant(),
            Node::Case(whens, otherwise) => {
                whens.iter().all(|(condition, result)| condition.is_constant() && result.is_constant())
                    && otherwise.as_ref().is_none_or(|otherwise| otherwise.is_constant())
            }
        }
    }

    /// The literal, if it is one.
    pub(super) fn literal(&self) -> Option<&Datum> {
        match &self.node {
            Node::Literal(datum) => Some(datum),
            Node::Truth(inner) => inner.literal(),
            _ => None,
        }
    }

    /// Its value for a row.
    pub(crate) fn value(&self, row: &[Datum]) -> Result<Datum, Refusal> {
        match &self.node {
            Node::Input(slot, _) | Node::Result(slot) => {
                row.get(*slot).cloned().ok_or_else(|| Refusal::new("a column is missing"))
            }
            Node::Literal(datum) => Ok(datum.clone()),
            Node::Call(compute, operands) => {
                let values: Vec<Datum> =
                    operands.iter().map(|operand| operand.value(row)).collect::<Result<_, _>>()?;
                compute(&values)
            }
            Node::Stored(compute, inner) | Node::Branch(compute, inner) => compute(&[inner.value(row)?]),
            Node::Truth(inner) => inner.value(row),
            Node::Logical(until, operands) => {
                let mut result = Some(!until);
                for operand in operands {
                    match operand.value(row)?.condition(&operand.kind)? {
                        Some(truth) if truth == *until => return Ok(Datum::truth(*until)),
                        Some(_) => {}
                        None => result = None,
                    }
                }
                Ok(result.map_or(Datum::Null, Datum::truth))
            }
            Node::Case(whens, otherwise) => {
                for (condition, result) in whens {
                    if condition.value(row)?.condition(&condition.kind)? == Some(true) {
                        return converted(result.value(row)?, &result.kind, &self.kind);
                    }
                }
                match otherwise {
                    Some(otherwise) => converted(otherwise.value(row)?, &otherwise.kind, &self.kind),
                    None => Ok(Datum::Null),
                }
            }
            Node::Coalesce(operands) => {
                for operand in operands {
                    let value = operand.value(row)?;
                    if !value.is_null() {
                        return converted(value, &operand.kind, &self.kind);
                    }
                }
                Ok(Datum::Null)
            }
        }
    }
}
