//! What is known of a value without it: CHARSET, COLLATION, COERCIBILITY; and functions that only take time.

use super::datum::Datum;
use super::node::{Node, Typed};
use super::{Kind, Refusal};
use crate::expression::collating::{COERCIBLE, Collating};

/// A function of this kind; `None` if there is none of that name.
pub(super) fn function(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    let text = |text: &str| Typed {
        node: Node::Literal(Datum::Text(text.to_string())),
        kind: Kind::Text(Collating::named("utf8mb3_general_ci", COERCIBLE)),
    };
    let number =
        |number: i64| Typed { node: Node::Literal(Datum::Int(number)), kind: Kind::Int { unsigned: false } };
    Ok(Some(match (name, operands) {
        ("charset" | "collation", [of]) if mysql && is_column_of_documents(of) => text("binary"),
        ("charset", [of]) => text(match &of.kind {
            Kind::Text(own) => known(own.charset.as_deref())?,
            Kind::Choice(choice) => known(choice.collating.charset.as_deref())?,
            Kind::Json => "utf8mb4",
            _ => "binary",
        }),
        ("collation", [of]) => text(match &of.kind {
            Kind::Text(own) => known(own.collation.as_deref())?,
            Kind::Choice(choice) => known(choice.collating.collation.as_deref())?,
            Kind::Json => "utf8mb4_bin",
            _ => "binary",
        }),
        ("coercibility", [of]) => match &of.kind {
            Kind::Null => number(6),
            Kind::Text(own) if own.strength <= COERCIBLE && own.collation.is_some() => {
                number(own.strength.into())
            }
            Kind::Int { .. } | Kind::Decimal { .. } | Kind::Double { .. } | Kind::Date => number(5),
            Kind::Time { .. } | Kind::DateTime { .. } => number(5),
            _ => return Err(Refusal::new("the coercibility of this value")),
        },
        ("sleep", [of]) if matches!(of.literal(), Some(Datum::Int(0))) => number(0),
        ("benchmark", [count, _]) if matches!(count.literal(), Some(Datum::Int(0..))) => number(0),
        // No role is set.
        ("current_role", []) if mysql => text("NONE"),
        ("current_role", []) => Typed { node: Node::Literal(Datum::Null), kind: text("").kind },
        ("last_insert_id", []) => {
            Typed { node: Node::Literal(Datum::UInt(0)), kind: Kind::Int { unsigned: true } }
        }
        _ => return Ok(None),
    }))
}

/// Whether it is a column of JSON, which has no character set to MySQL; what functions give has one.
fn is_column_of_documents(of: &Typed) -> bool {
    of.kind == Kind::Json && matches!(of.node, Node::Input(..))
}

/// A name that the server gives as well: some of MySQL's stand for collations of MariaDB here.
fn known(name: Option<&str>) -> Result<&str, Refusal> {
    match name {
        Some(name) if !name.contains("uca1400_nopad") => Ok(name),
        _ => Err(Refusal::new("a collation that is not known")),
    }
}
