//! JSON_TABLE: rows of a document.
//!
//! 1. The path of the table leads to values, each of which is a row.
//! 2. Columns take their values by paths from there. What a path does not find is *empty*, what does not fit into the
//!    column is an *error*; for either a column has NULL, a default, or gives up.
//! 3. NESTED PATH has rows of its own for each row: those of several stand below each other, with NULLs for the others,
//!    and a row without any has NULLs for all.
//!
//! MySQL converts strictly; MariaDB stores as an INSERT that is not strict does. What they may convert in another way
//! is refused.

use tanada_innodb::ColumnType;

use super::super::assign;
use super::super::datum::{Datum, Decimal};
use super::super::{Kind, Refusal, Rules, is_calendar_date};
use super::document::{Json, Parsed, parse};
use super::path::{Path, Step};
use super::spans::Whole;
use super::{Found, document};

/// What a column has in place of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Otherwise {
    Null,
    Error,
    /// The text of DEFAULT.
    Default(String),
}

/// A column of values.
#[derive(Debug, Clone)]
pub(crate) struct ValueColumn {
    pub name: String,
    pub slot: usize,
    pub column_type: ColumnType,
    /// Whether it is of the type JSON.
    pub is_document: bool,
    path: Path,
    on_empty: Otherwise,
    on_error: Otherwise,
}

/// An item of COLUMNS.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    /// FOR ORDINALITY.
    Ordinality {
        slot: usize,
    },
    Value(ValueColumn),
    /// EXISTS PATH, stored into the column's type.
    Exists {
        slot: usize,
        path: Path,
        column_type: ColumnType,
    },
    Nested {
        path: Path,
        items: Vec<Item>,
    },
}

/// A JSON_TABLE over documents.
#[derive(Debug, Clone)]
pub(crate) struct JsonTable {
    path: Path,
    items: Vec<Item>,
    /// How many columns there are.
    width: usize,
    mysql: bool,
}

/// A path of the statement's text.
///
/// # Errors
/// If it is none, or one that the server reads in another way.
pub(crate) fn path(text: &str, mysql: bool) -> Result<Path, Refusal> {
    let path = Path::parse(text)?;
    let is_of_mysql = |step: &Step| {
        use super::path::Place;
        matches!(step, Step::Elements(..) | Step::Element(Place::FromEnd(_)))
    };
    if !mysql && path.steps.iter().any(is_of_mysql) {
        return Err(Refusal::new(format!("the JSON path {text} in JSON_TABLE")));
    }
    Ok(path)
}

impl ValueColumn {
    /// # Errors
    /// If the server does not have such a column, or its values are not known.
    pub(crate) fn new(
        name: &str,
        slot: usize,
        column_type: ColumnType,
        is_document: bool,
        path: Path,
        otherwise: [Otherwise; 2],
        rules: &Rules,
    ) -> Result<ValueColumn, Refusal> {
        check_type(name, &column_type)?;
        let [on_empty, on_error] = otherwise;
        let name = name.to_string();
        let column = ValueColumn { name, slot, column_type, is_document, path, on_empty, on_error };
        if rules.mysql {
            for otherwise in [&column.on_empty, &column.on_error] {
                if let Otherwise::Default(text) = otherwise {
                    column.default(text, rules)?;
                }
            }
        }
        Ok(column)
    }

    /// The value of DEFAULT: a document to MySQL, a text to MariaDB.
    fn default(&self, text: &str, rules: &Rules) -> Result<Datum, Refusal> {
        let invalid = || Refusal::new(format!("Invalid default value for '{}'", self.name));
        if !rules.mysql {
            return self.lenient(text, rules);
        }
        match parse(text, true)? {
            Parsed::Document(value) => self.strict(&value)?.ok_or_else(invalid),
            Parsed::Invalid => Err(invalid()),
        }
    }

    fn otherwise(&self, otherwise: &Otherwise, error: &str, rules: &Rules) -> Result<Datum, Refusal> {
        match otherwise {
            Otherwise::Null => Ok(Datum::Null),
            Otherwise::Error => Err(Refusal::new(format!("{error} JSON_TABLE column '{}'", self.name))),
            Otherwise::Default(text) => self.default(text, rules),
        }
    }

    fn value(&self, context: &Json, whole: &Whole<'_>, rules: &Rules) -> Result<Datum, Refusal> {
        let found = self.path.find(context);
        let value = match found.as_slice() {
            [] => return self.otherwise(&self.on_empty, "Missing value for", rules),
            [only] if self.is_document && !rules.mysql => {
                return Ok(Datum::Text(whole.spelling(only)?.to_string()));
            }
            [only] => match (only, rules.mysql) {
                (Json::Null, _) => return Ok(Datum::Null),
                (only, true) => self.strict(only)?,
                (Json::Array(_) | Json::Object(_), false) => None,
                (Json::Text(text), false) => Some(self.lenient(&text.text, rules)?),
                (Json::Number(number), false) => Some(self.lenient(number, rules)?),
                (Json::Truth(truth), false) => Some(self.lenient(self.truth(*truth), rules)?),
            },
            several if self.is_document && rules.mysql => {
                let all = several.iter().map(|value| (*value).clone()).collect();
                Some(Datum::Text(Json::Array(all).spelled()))
            }
            _ => None,
        };
        match value {
            Some(value) => Ok(value),
            None => self.otherwise(&self.on_error, "Value is out of range for", rules),
        }
    }

    fn is_text(&self) -> bool {
        matches!(
            self.column_type,
            ColumnType::Char { .. } | ColumnType::VarChar { .. } | ColumnType::Text { .. }
        )
    }

    /// A truth as MariaDB stores it.
    fn truth(&self, truth: bool) -> &'static str {
        match (self.is_text(), truth) {
            (true, true) => "true",
            (true, false) => "false",
            (false, true) => "1",
            (false, false) => "0",
        }
    }

    /// A text stored as MariaDB does.
    fn lenient(&self, text: &str, rules: &Rules) -> Result<Datum, Refusal> {
        if self.is_document {
            return Ok(Datum::Text(text.to_string()));
        }
        if let ColumnType::Integer { unsigned: true, .. } = self.column_type
            && Decimal::prefix(text).is_some_and(|number| number.saturated() < i128::from(i64::MIN))
        {
            return Err(Refusal::new(format!("{text} in an unsigned column of JSON_TABLE")));
        }
        check_date(text, &self.column_type)?;
        assign::stored(Datum::Text(text.to_string()), &utf8mb4(), &self.column_type, rules)
    }

    /// A value stored as MySQL does; `None` if it does not fit.
    fn strict(&self, value: &Json) -> Result<Option<Datum>, Refusal> {
        if self.is_document {
            return Ok(Some(match value {
                Json::Null => Datum::Null,
                value => Datum::Text(value.spelled()),
            }));
        }
        let text = match value {
            Json::Null => return Ok(Some(Datum::Null)),
            Json::Array(_) | Json::Object(_) => return Ok(None),
            Json::Text(text) => text.text.clone(),
            Json::Number(_) => value.spelled(),
            Json::Truth(truth) if self.is_text() => truth.to_string(),
            Json::Truth(truth) => u8::from(*truth).to_string(),
        };
        let is_string = matches!(value, Json::Text(_));
        match &self.column_type {
            ColumnType::Integer { bytes, unsigned } => strict_integer(&text, is_string, *bytes, *unsigned),
            ColumnType::Decimal { precision, scale, unsigned } => {
                if !is_string && text.parse::<u64>().is_ok_and(|number| i64::try_from(number).is_err()) {
                    return Err(Refusal::new(format!("{text} in a DECIMAL column of JSON_TABLE")));
                }
                if !is_number(text.trim()) {
                    return Ok(None);
                }
                let number = Decimal::prefix(text.trim()).ok_or_else(Refusal::digits)?.rounded(*scale)?;
                let fits = number.clamped(*precision)? == number && !(*unsigned && number.signum() < 0);
                Ok(fits.then_some(Datum::Decimal(number)))
            }
            ColumnType::Double | ColumnType::Float => {
                let number = match text.trim_start() {
                    "" if is_string => 0.0,
                    text if is_number(text) => text.parse().unwrap_or(f64::INFINITY),
                    _ => return Ok(None),
                };
                match self.column_type {
                    _ if number == 0.0 && text.contains('-') => Err(Refusal::new("a negative zero")),
                    ColumnType::Double if number.is_finite() => Ok(Some(Datum::Double(number))),
                    ColumnType::Float if (number as f32).is_finite() => Ok(Some(Datum::Float(number as f32))),
                    _ => Err(Refusal::new(format!("{text} in a column of JSON_TABLE"))),
                }
            }
            ColumnType::Char { length, .. } | ColumnType::VarChar { length, .. } => {
                let fits = text.trim_end_matches(' ').chars().count() <= *length as usize;
                let kept: String = text.chars().take(*length as usize).collect();
                Ok(fits.then(|| match self.column_type {
                    ColumnType::Char { .. } => Datum::Text(kept.trim_end_matches(' ').to_string()),
                    _ => Datum::Text(kept),
                }))
            }
            ColumnType::Text { length_bytes, .. } => {
                let most = 1_u64 << (8 * u32::from(*length_bytes).min(4));
                Ok(((text.len() as u64) < most).then_some(Datum::Text(text)))
            }
            column_type => {
                if !is_string {
                    return Err(Refusal::new(format!("{text} in this column of JSON_TABLE")));
                }
                check_date(&text, column_type)?;
                let rules = Rules::new(true);
                assign::stored(Datum::Text(text), &utf8mb4(), column_type, &rules).map(Some)
            }
        }
    }
}

fn utf8mb4() -> Kind {
    super::super::strings::ascii()
}

/// An integer of MySQL: a text has to be whole digits, a double goes to the nearest even one.
fn strict_integer(text: &str, is_string: bool, bytes: u8, unsigned: bool) -> Result<Option<Datum>, Refusal> {
    let number = match text.trim_start().parse::<i128>() {
        Ok(number) => number,
        Err(_) if is_string => return Ok(None),
        Err(_) => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => number.round_ties_even().clamp(-1e30, 1e30) as i128,
            _ => return Ok(None),
        },
    };
    let is_double = !is_string && text.contains(['.', 'e', 'E']);
    if unsigned && is_double && number < 0 {
        return Err(Refusal::new(format!("{text} in an unsigned column of JSON_TABLE")));
    }
    let bits = 8 * u32::from(bytes);
    let range = if unsigned { 0..1_i128 << bits } else { -(1_i128 << (bits - 1))..1_i128 << (bits - 1) };
    Ok(range.contains(&number).then_some(if unsigned {
        Datum::UInt(number as u64)
    } else {
        Datum::Int(number as i64)
    }))
}

/// Whether all of a text is a number, with digits before or behind a point, and perhaps an exponent.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent = exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

fn check_type(name: &str, column_type: &ColumnType) -> Result<(), Refusal> {
    match column_type {
        ColumnType::Integer { .. }
        | ColumnType::Decimal { .. }
        | ColumnType::Float
        | ColumnType::Double
        | ColumnType::Char { .. }
        | ColumnType::VarChar { .. }
        | ColumnType::Text { .. }
        | ColumnType::Date
        | ColumnType::DateTime { .. }
        | ColumnType::Time { .. }
        | ColumnType::Json => Ok(()),
        _ => Err(Refusal::new(format!("the type of column '{name}' of JSON_TABLE"))),
    }
}

/// Refuses texts for dates and times that are not written plainly, or are none.
fn check_date(text: &str, column_type: &ColumnType) -> Result<(), Refusal> {
    const DATE: &str = "dddd-dd-dd";
    const TIME: &str = "dd:dd:dd";
    let is_like = |text: &str, form: &str| {
        text.len() == form.len()
            && text.bytes().zip(form.bytes()).all(|(byte, of)| match of {
                b'd' => byte.is_ascii_digit(),
                of => byte == of,
            })
    };
    let is_time = |text: &str| {
        let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let below = |range: std::ops::Range<usize>, most: u8| {
            clock.get(range).and_then(|part| part.parse::<u8>().ok()).is_some_and(|part| part < most)
        };
        is_like(clock, TIME)
            && below(0..2, 24)
            && below(3..5, 60)
            && below(6..8, 60)
            && fraction.len() <= 6
            && fraction.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_date = |text: &str| {
        let part = |range: std::ops::Range<usize>| text.get(range).and_then(|part| part.parse().ok());
        let parts = (part(0..4), part(5..7), part(8..10));
        let (Some(year), Some(month), Some(day)) = parts else { return false };
        is_like(text, DATE) && is_calendar_date(year, month, day)
    };
    let is_moment = || match text.get(..DATE.len()).zip(text.get(DATE.len() + 1..)) {
        Some((date, time)) => is_date(date) && is_time(time) && text.as_bytes()[DATE.len()] == b' ',
        None => is_date(text),
    };
    let is_plain = match column_type {
        ColumnType::Date | ColumnType::DateTime { .. } => is_moment(),
        ColumnType::Time { .. } => is_time(text),
        _ => true,
    };
    if is_plain { Ok(()) } else { Err(Refusal::new(format!("'{text}' in a column of JSON_TABLE"))) }
}

impl JsonTable {
    pub(crate) fn new(path: Path, items: Vec<Item>, width: usize, mysql: bool) -> JsonTable {
        JsonTable { path, items, width, mysql }
    }

    /// The rows of a document; none of NULL.
    ///
    /// # Errors
    /// If the document is none, or a value cannot be stored.
    pub(crate) fn rows(&self, value: &Datum, kind: &Kind, rules: &Rules) -> Result<Vec<Vec<Datum>>, Refusal> {
        let mut rows = Vec::new();
        let Some(text) = value.text(kind)? else { return Ok(rows) };
        let parsed = match self.mysql && *kind == Kind::Json {
            true => document(value, kind, true)?,
            false => match parse(&text, self.mysql)? {
                Parsed::Document(document) => Found::Document(document),
                Parsed::Invalid => {
                    return Err(Refusal::new("Invalid JSON text in argument 1 to function JSON_TABLE"));
                }
            },
        };
        let Found::Document(document) = parsed else { return Ok(rows) };
        let whole = Whole { text: &text, document: &document };
        for (no, context) in self.path.find(&document).into_iter().enumerate() {
            let row = vec![Datum::Null; self.width];
            expand(&self.items, context, no + 1, row, &whole, rules, &mut rows)?;
        }
        Ok(rows)
    }
}

/// Adds the rows of `items` for one value.
fn expand(
    items: &[Item],
    context: &Json,
    number: usize,
    mut row: Vec<Datum>,
    whole: &Whole<'_>,
    rules: &Rules,
    rows: &mut Vec<Vec<Datum>>,
) -> Result<(), Refusal> {
    let mut set = |slot: usize, value: Datum| {
        if let Some(place) = row.get_mut(slot) {
            *place = value;
        }
    };
    for item in items {
        match item {
            Item::Ordinality { slot } => set(*slot, Datum::UInt(number as u64)),
            Item::Value(column) => set(column.slot, column.value(context, whole, rules)?),
            Item::Exists { slot, path, column_type } => {
                let found = Datum::Int(i64::from(!path.find(context).is_empty()));
                let kind = Kind::Int { unsigned: false };
                set(*slot, assign::stored(found, &kind, column_type, rules)?);
            }
            Item::Nested { .. } => {}
        }
    }
    let before = rows.len();
    for item in items {
        if let Item::Nested { path, items } = item {
            for (no, inner) in path.find(context).into_iter().enumerate() {
                expand(items, inner, no + 1, row.clone(), whole, rules, rows)?;
            }
        }
    }
    if rows.len() == before {
        rows.push(row);
    }
    Ok(())
}
