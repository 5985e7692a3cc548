//! Aggregates that show one of a group's texts: the first that was read, the least, the greatest.
//!
//! The last two take the text and its sort key; of equal ones the first is shown.

use std::mem::size_of;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, StringViewArray, StringViewBuilder,
};
use datafusion::arrow::compute::{cast, nullif};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};

use super::sliding::Sliding;

/// Which text of a group is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Choice {
    First,
    Least,
    Greatest,
    /// Of equal ones the last.
    LastGreatest,
}

static FIRST: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| Chosen::function(Choice::First));
static LEAST: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| Chosen::function(Choice::Least));
static GREATEST: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| Chosen::function(Choice::Greatest));
static LAST_GREATEST: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| Chosen::function(Choice::LastGreatest));

/// The aggregates.
pub fn aggregates() -> Vec<Arc<AggregateUDF>> {
    [Choice::First, Choice::Least, Choice::Greatest, Choice::LastGreatest].map(Choice::aggregate).into()
}

impl Choice {
    /// The aggregate that makes this choice.
    pub(super) fn aggregate(self) -> Arc<AggregateUDF> {
        Arc::clone(match self {
            Choice::First => &FIRST,
            Choice::Least => &LEAST,
            Choice::Greatest => &GREATEST,
            Choice::LastGreatest => &LAST_GREATEST,
        })
    }

    /// Whether a text with the key `new` is shown instead of one with the key `old`.
    pub(super) fn prefers(self, new: &[u8], old: &[u8]) -> bool {
        match self {
            Choice::First => false,
            Choice::Least => new < old,
            Choice::Greatest => new > old,
            Choice::LastGreatest => new >= old,
        }
    }
}

/// Whether the aggregate of this name shows one of several equal texts.
pub(crate) fn shows_one_text(name: &str) -> bool {
    matches!(name, "first_text" | "least_text" | "greatest_text" | "last_greatest_text")
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Chosen {
    choice: Choice,
    signature: Signature,
}

impl Chosen {
    fn function(choice: Choice) -> Arc<AggregateUDF> {
        let arguments = if choice == Choice::First { 1 } else { 2 };
        let signature = Signature::any(arguments, Volatility::Immutable);
        Arc::new(AggregateUDF::from(Chosen { choice, signature }))
    }
}

impl AggregateUDFImpl for Chosen {
    fn name(&self) -> &str {
        match self.choice {
            Choice::First => "first_text",
            Choice::Least => "least_text",
            Choice::Greatest => "greatest_text",
            Choice::LastGreatest => "last_greatest_text",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments.first() {
            Some(text) => Ok(text.clone()),
            None => plan_err!("{} takes a text", self.name()),
        }
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        let types: Vec<DataType> = arguments.iter().map(|field| field.data_type().clone()).collect();
        let metadata = arguments.first().map(|field| field.metadata().clone()).unwrap_or_default();
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, true).with_metadata(metadata)))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let name = |part: &str| format!("{}[{part}]", arguments.name);
        let mut fields =
            vec![Arc::new(Field::new(name("text"), arguments.return_field.data_type().clone(), true))];
        if self.choice != Choice::First {
            fields.push(Arc::new(Field::new(name("key"), DataType::BinaryView, true)));
        }
        Ok(fields)
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let shown = arguments.return_field.data_type().clone();
        Ok(Box::new(One { groups: Groups::new(self.choice, shown) }))
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Sliding::new(self.choice, arguments.return_field.data_type().clone())))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups::new(self.choice, arguments.return_field.data_type().clone())))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Keys of groups, of those that have a text.
type Keys = Vec<Option<Box<[u8]>>>;

/// The texts of all groups.
#[derive(Debug)]
struct Groups {
    choice: Choice,
    shown: DataType,
    texts: Vec<Option<Box<str>>>,
    keys: Vec<Box<[u8]>>,
    bytes: usize,
}

impl Groups {
    fn new(choice: Choice, shown: DataType) -> Groups {
        Groups { choice, shown, texts: Vec::new(), keys: Vec::new(), bytes: 0 }
    }

    fn offer(&mut self, group: usize, text: &str, key: &[u8]) {
        let replaces = match &self.texts[group] {
            None => true,
            Some(_) => self.choice.prefers(key, &self.keys[group]),
        };
        if replaces {
            let old = self.texts[group].as_ref().map_or(0, |text| text.len()) + self.keys[group].len();
            self.bytes = self.bytes + text.len() + key.len() - old;
            self.texts[group] = Some(text.into());
            self.keys[group] = key.into();
        }
    }

    fn offer_all(
        &mut self,
        values: &[ArrayRef],
        groups: impl Iterator<Item = usize>,
        filter: Option<&BooleanArray>,
    ) -> Result<()> {
        let texts = views(values)?;
        let keys = match self.choice {
            Choice::First => None,
            _ => Some(keys(values)?),
        };
        for (row, group) in groups.enumerate() {
            let passes = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            let is_kept = self.choice == Choice::First && self.texts[group].is_some();
            if is_kept || !passes || texts.is_null(row) {
                continue;
            }
            self.offer(group, texts.value(row), keys.as_ref().map_or(&[], |keys| keys.value(row)));
        }
        Ok(())
    }

    fn resize(&mut self, groups: usize) {
        self.texts.resize(groups, None);
        self.keys.resize(groups, Box::default());
    }

    fn taken(&mut self, emit_to: EmitTo) -> Result<(ArrayRef, Keys)> {
        let (texts, keys) = (emit_to.take_needed(&mut self.texts), emit_to.take_needed(&mut self.keys));
        let mut builder = StringViewBuilder::with_capacity(texts.len());
        for text in &texts {
            builder.append_option(text.as_deref());
        }
        let array: ArrayRef = Arc::new(builder.finish());
        let keys = keys.into_iter().zip(&texts).map(|(key, text)| text.as_ref().map(|_| key)).collect();
        self.bytes = self.texts.iter().flatten().map(|text| text.len()).sum::<usize>()
            + self.keys.iter().map(|key| key.len()).sum::<usize>();
        Ok((cast(&array, &self.shown)?, keys))
    }
}

pub(super) fn views(values: &[ArrayRef]) -> Result<StringViewArray> {
    match values.first() {
        Some(texts) => Ok(cast(texts, &DataType::Utf8View)?.as_string_view().clone()),
        None => plan_err!("texts are missing"),
    }
}

/// The keys that texts are chosen by.
pub(super) fn keys(values: &[ArrayRef]) -> Result<BinaryViewArray> {
    match values.get(1) {
        Some(keys) => Ok(cast(keys, &DataType::BinaryView)?.as_binary_view().clone()),
        None => plan_err!("texts are chosen by their sort keys"),
    }
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.resize(total_groups);
        self.offer_all(values, group_indices.iter().copied(), filter)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(self.taken(emit_to)?.0)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let (texts, keys) = self.taken(emit_to)?;
        Ok(match self.choice {
            Choice::First => vec![texts],
            _ => vec![texts, Arc::new(keys.iter().map(Option::as_deref).collect::<BinaryViewArray>())],
        })
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_groups: usize,
    ) -> Result<()> {
        GroupsAccumulator::update_batch(self, values, group_indices, None, total_groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let mut values = values.to_vec();
        if self.choice != Choice::First {
            values[1] = Arc::new(keys(&values)?);
        }
        let Some(filter) = filter else { return Ok(values) };
        let left_out: BooleanArray = filter.iter().map(|passes| Some(passes != Some(true))).collect();
        values.iter().map(|array| Ok(nullif(array, &left_out)?)).collect()
    }

    fn size(&self) -> usize {
        let each = size_of::<Option<Box<str>>>() + size_of::<Box<[u8]>>();
        self.bytes + self.texts.capacity() * each
    }
}

/// A single group.
#[derive(Debug)]
struct One {
    groups: Groups,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.groups.resize(1);
        let rows = values.first().map_or(0, |values| values.len());
        self.groups.offer_all(values, std::iter::repeat_n(0, rows), None)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.groups.resize(1);
        let shown = &self.groups.shown;
        let mut builder = StringViewBuilder::with_capacity(1);
        builder.append_option(self.groups.texts[0].as_deref());
        let array: ArrayRef = Arc::new(builder.finish());
        ScalarValue::try_from_array(&cast(&array, shown)?, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let text = self.evaluate()?;
        let key = (!text.is_null()).then(|| self.groups.keys[0].to_vec());
        Ok(match self.groups.choice {
            Choice::First => vec![text],
            _ => vec![text, ScalarValue::BinaryView(key)],
        })
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn size(&self) -> usize {
        GroupsAccumulator::size(&self.groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrays() -> Vec<ArrayRef> {
        let texts = StringViewArray::from(vec![Some("b"), Some("B"), None, Some("a"), Some("A")]);
        let keys: Vec<Option<&[u8]>> = vec![Some(b"B"), Some(b"B"), None, Some(b"A"), Some(b"A")];
        vec![Arc::new(texts), Arc::new(BinaryViewArray::from(keys))]
    }

    #[test]
    fn the_first_of_equal_texts_is_shown() {
        for (choice, expected) in
            [(Choice::First, "b"), (Choice::Least, "a"), (Choice::Greatest, "b"), (Choice::LastGreatest, "B")]
        {
            let mut one = One { groups: Groups::new(choice, DataType::Utf8View) };
            let values = arrays();
            one.update_batch(&values).unwrap();
            assert_eq!(one.evaluate().unwrap(), ScalarValue::Utf8View(Some(expected.to_string())));
            let mut groups = Groups::new(choice, DataType::Utf8View);
            groups.update_batch(&values, &[1, 1, 0, 1, 1], None, 2).unwrap();
            let state = groups.state(EmitTo::All).unwrap();
            let mut merged = Groups::new(choice, DataType::Utf8View);
            merged.merge_batch(&state, &[0, 1], 2).unwrap();
            let shown = merged.evaluate(EmitTo::All).unwrap();
            let shown: Vec<Option<&str>> = shown.as_string_view().iter().collect();
            assert_eq!(shown, [None, Some(expected)], "{choice:?}");
        }
    }
}
