//! The function that stands for every scalar operator and function of a query until it is bound.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::bound::{input, literal, typed_call};
use super::field::{field_of, kind_of, kind_of_literal};
use super::unsupported;
use crate::expression::{Kind, Rules};
use crate::session::context::QueryContext;

/// Its name in the syntax tree.
pub(crate) const NAME: &str = "server";

/// Names of operators whose result is a truth value.
const CONDITIONS: [&str; 17] = [
    "case =",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "<=>",
    "between",
    "in",
    "like",
    "regexp",
    "xor",
    "condition",
    "isnull",
    "regexp_like",
    "sounds like",
];

/// Whether a call gives a truth value, which is an Arrow Boolean here and a number to the servers.
pub(crate) fn is_condition(name: &str) -> bool {
    CONDITIONS.contains(&name)
}

/// `server('name', operands ...)`.
#[derive(Debug)]
pub(crate) struct ServerCall {
    pub(super) rules: Rules,
    pub(super) query: Arc<QueryContext>,
    signature: Signature,
}

impl ServerCall {
    /// The function for one query.
    pub(crate) fn new(rules: Rules, query: Arc<QueryContext>) -> ServerCall {
        ServerCall { rules, query, signature: Signature::variadic_any(Volatility::Immutable) }
    }
}

impl PartialEq for ServerCall {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.query, &other.query)
    }
}

impl Eq for ServerCall {}

impl Hash for ServerCall {
    fn hash<H: Hasher>(&self, state: &mut H) {
        NAME.hash(state);
    }
}

/// A field of truth values.
pub(super) fn truth_field(name: &str) -> Field {
    let metadata = super::field::metadata_of(&Kind::Int { unsigned: false });
    Field::new(name, DataType::Boolean, true).with_metadata(metadata)
}

impl ScalarUDFImpl for ServerCall {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the type of an expression depends on more than Arrow types")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let Some(Some(ScalarValue::Utf8(Some(name)))) = args.scalar_arguments.first() else {
            return internal_err!("a call without a name");
        };
        if is_condition(name) {
            return Ok(Arc::new(truth_field(name)));
        }
        let mut operands = Vec::new();
        for (no, field) in args.arg_fields.iter().enumerate().skip(1) {
            let kind = match args.scalar_arguments[no] {
                Some(value) if !field.metadata().contains_key(super::KIND) => {
                    kind_of_literal(value, &self.rules)
                }
                _ => kind_of(field),
            };
            let kind = kind.map_err(|refusal| unsupported(name, &refusal))?;
            operands.push(match args.scalar_arguments[no] {
                Some(value) => literal(value, kind)?,
                None => input(no - 1, kind, &self.rules),
            });
        }
        let typed = typed_call(name, operands, &self.rules).map_err(|refusal| unsupported(name, &refusal))?;
        Ok(Arc::new(field_of(name, &typed.kind, true)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("an expression was not bound to its operands")
    }
}
