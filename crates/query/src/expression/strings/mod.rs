//! Functions of texts.
//!
//! Where an operand is bytes, a text's bytes take part, and the result is bytes: inside, each byte is a letter then.

mod addresses;
mod ciphers;
mod digests;
mod edit;
mod encode;
mod encoded;
mod letters;
mod radix;
mod regexp;
mod search;
mod sets;
mod sortable;

pub(super) use encode::ascii;

use super::collating::{Collating, NONE};
use super::conversions::{letters_of, of_letters, textual};
use super::datum::Datum;
use super::node::Typed;
use super::{Kind, Refusal, Rules, compare};

/// Longest text that a function may give, in characters.
const MAX_LENGTH: usize = 1 << 24;
const SIGNED: Kind = Kind::Int { unsigned: false };

/// A function of texts; `None` if there is none of that name.
pub(super) fn function(name: &str, operands: &[Typed], rules: &Rules) -> Result<Option<Typed>, Refusal> {
    let mysql = rules.mysql;
    let operands = operands.to_vec();
    if let Some(found) = length(name, &operands, mysql)? {
        return Ok(Some(found));
    }
    match (name, operands.len()) {
        ("strcmp", 2) => return compare::strcmp(operands, rules).map(Some),
        ("field", 2..) => return compare::field(operands, rules).map(Some),
        _ => {}
    }
    for of in [
        edit::function,
        search::function,
        sets::function,
        encode::function,
        radix::function,
        letters::function,
        digests::function,
        ciphers::function,
        addresses::function,
        regexp::function,
        sortable::function,
        encoded::function,
    ] {
        if let Some(found) = of(name, &operands, mysql)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The functions that count.
fn length(name: &str, operands: &[Typed], mysql: bool) -> Result<Option<Typed>, Refusal> {
    let [of] = operands else { return Ok(None) };
    let (bytes, factor) = match name {
        "char_length" | "character_length" => (false, 1),
        "length" | "octet_length" => (true, 1),
        "lengthb" if !mysql => (true, 1),
        "bit_length" => (true, 8),
        _ => return Ok(None),
    };
    textual(of, mysql)?;
    let kind = of.kind.clone();
    let binary = bytes || kind.is_binary();
    Ok(Some(Typed::call(SIGNED, operands.to_vec(), move |values| {
        Ok(match letters_of(&values[0], &kind, binary)? {
            None => Datum::Null,
            Some(text) => Datum::Int(factor * text.chars().count() as i64),
        })
    })))
}

/// What the text operands of a function have in common.
struct Texts {
    binary: bool,
    collating: Collating,
}

impl Texts {
    /// Of the operands at positions `of`.
    fn of(operands: &[Typed], of: &[usize], mysql: bool) -> Result<Texts, Refusal> {
        let mut texts: Option<Texts> = None;
        for at in of {
            let operand = &operands[*at];
            textual(operand, mysql)?;
            let (binary, collating) = (operand.kind.is_binary(), operand.kind.collating());
            texts = Some(match texts {
                None => Texts { binary, collating },
                Some(texts) if binary || texts.binary => Texts { binary: true, collating },
                Some(texts) => Texts { binary, collating: texts.collating.mixed(&collating, "concat")? },
            });
        }
        texts.ok_or_else(|| Refusal::new("a function of no texts"))
    }

    /// The same, if the function may compare them.
    fn comparable(self, operation: &str) -> Result<Texts, Refusal> {
        match !self.binary && self.collating.strength == NONE {
            true => Err(Refusal::new(format!("Illegal mix of collations for operation '{operation}'"))),
            false => Ok(self),
        }
    }

    /// The type of a result.
    fn kind(&self) -> Kind {
        match self.binary {
            true => Kind::Bytes,
            false => Kind::Text(self.collating.clone()),
        }
    }
}

/// A function of the texts among the operands (positions `of`) and of the other operands as whole numbers; NULL if one
/// is.
fn texts(
    operands: Vec<Typed>,
    of: &[usize],
    mysql: bool,
    compute: impl Fn(&[String], &[i128]) -> Result<Option<String>, Refusal> + Send + Sync + 'static,
) -> Result<Typed, Refusal> {
    let common = Texts::of(&operands, of, mysql)?;
    let (kind, binary) = (common.kind(), common.binary);
    let call = with_texts(&operands, of, binary, move |texts, numbers| {
        Ok(compute(texts, numbers)?.map_or(Datum::Null, |text| of_letters(text, binary)))
    });
    Ok(Typed::call(kind, operands, call))
}

/// Refuses texts that a function cannot compare with one another.
fn check_comparable(operands: &[Typed], of: &[usize], name: &str, mysql: bool) -> Result<(), Refusal> {
    Texts::of(operands, of, mysql)?.comparable(name).map(|_| ())
}

/// A number that is computed from texts and other whole numbers.
fn number_of_texts(
    operands: Vec<Typed>,
    of: &[usize],
    mysql: bool,
    compute: impl Fn(&[String], &[i128], &Texts) -> Result<Datum, Refusal> + Send + Sync + 'static,
) -> Result<Typed, Refusal> {
    let common = Texts::of(&operands, of, mysql)?;
    let binary = common.binary;
    let call = with_texts(&operands, of, binary, move |texts, numbers| compute(texts, numbers, &common));
    Ok(Typed::call(SIGNED, operands, call))
}

fn with_texts(
    operands: &[Typed],
    of: &[usize],
    binary: bool,
    compute: impl Fn(&[String], &[i128]) -> Result<Datum, Refusal> + Send + Sync + 'static,
) -> impl Fn(&[Datum]) -> Result<Datum, Refusal> + Send + Sync + 'static {
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let of = of.to_vec();
    move |values: &[Datum]| {
        let (mut texts, mut numbers) = (Vec::new(), Vec::new());
        for (at, (value, kind)) in values.iter().zip(&kinds).enumerate() {
            if value.is_null() {
                return Ok(Datum::Null);
            }
            match of.contains(&at) {
                true => texts.extend(letters_of(value, kind, binary)?),
                false => numbers.extend(value.whole(kind)?),
            }
        }
        compute(&texts, &numbers)
    }
}

/// MariaDB takes the letters of texts for others where the first operand is a number.
fn mixed_with_number(operands: &[Typed], of: &[usize], mysql: bool) -> bool {
    !mysql
        && of.first().is_some_and(|at| operands[*at].kind.is_number() || operands[*at].kind.is_temporal())
        && of.iter().any(|at| operands[*at].kind.is_string())
}

/// Refuses a text that would be too long.
fn bounded(length: usize) -> Result<(), Refusal> {
    match length <= MAX_LENGTH {
        true => Ok(()),
        false => Err(Refusal::new("a text that is too long")),
    }
}
