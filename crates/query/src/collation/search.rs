//! The engine's `strpos` and `find_in_set` by collation.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use tanada_innodb::schema::Server;

use super::comparing::refused;
use crate::expression::{Collating, Refusal};

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    /// The place of a part in a text.
    Position,
    /// The number of the element of a list.
    Element,
}

impl Search {
    /// The function's name to the servers.
    pub(super) fn name(self) -> &'static str {
        match self {
            Search::Position => "locate",
            Search::Element => "find_in_set",
        }
    }
}

/// `part` looked for in `text`.
pub(super) fn call(search: Search, collating: Collating, server: Server, text: Expr, part: Expr) -> Expr {
    let signature = Signature::any(2, Volatility::Immutable);
    ScalarUDF::from(TextSearch { search, collating, server, signature }).call(vec![text, part])
}

#[derive(Debug, PartialEq)]
struct TextSearch {
    search: Search,
    collating: Collating,
    server: Server,
    signature: Signature,
}

impl Eq for TextSearch {}

impl Hash for TextSearch {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.search.name(), &self.collating.collation).hash(state);
    }
}

impl TextSearch {
    /// Where `part` is, from 1 on; 0 if it is nowhere.
    fn found(&self, text: &str, part: &str) -> Result<i32, Refusal> {
        let place = match self.search {
            Search::Position => self.collating.find(self.server, text, part, 0)?.map(|at| at + 1),
            Search::Element => self.collating.find_in_set(part, text)?,
        };
        i32::try_from(place.unwrap_or(0)).map_err(|_| Refusal::new("a text of more than 2 GiB"))
    }
}

impl ScalarUDFImpl for TextSearch {
    fn name(&self) -> &str {
        self.search.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [text, part] = arguments.args.as_slice() else {
            return plan_err!("{} takes two texts", self.name());
        };
        let views = |of: &ColumnarValue| -> Result<StringViewArray> {
            let array: ArrayRef = of.to_array(arguments.number_rows)?;
            Ok(cast(&array, &DataType::Utf8View)?.as_string_view().clone())
        };
        let (texts, parts) = (views(text)?, views(part)?);
        let found = texts.iter().zip(parts.iter()).map(|pair| match pair {
            (Some(text), Some(part)) => self.found(text, part).map(Some).map_err(refused),
            _ => Ok(None),
        });
        Ok(ColumnarValue::Array(Arc::new(found.collect::<Result<Int32Array>>()?)))
    }
}
