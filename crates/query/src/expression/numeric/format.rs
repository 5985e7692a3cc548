//! `FORMAT`: digits in groups of three.

use super::super::collating::Collating;
use super::super::datum::{Datum, Decimal};
use super::super::decimal::{MAX_SCALE, MAX_SCALE_MARIADB};
use super::super::node::Typed;
use super::super::{Kind, Refusal, conversions};
use super::rounding;

pub(super) fn format(operands: Vec<Typed>, mysql: bool) -> Result<Typed, Refusal> {
    let locale = match operands.get(2).map(Typed::literal) {
        None => "en_US".to_string(),
        Some(Some(Datum::Text(locale))) => locale.clone(),
        Some(_) => return Err(Refusal::new("a locale that varies")),
    };
    // The sign of the point, and of thousands.
    let (point, group) = match locale.to_ascii_lowercase().as_str() {
        "en_us" | "en_gb" | "en_au" | "en_ca" | "en_nz" | "ja_jp" | "ko_kr" | "zh_cn" | "zh_tw" => (".", ","),
        "de_de" | "nl_nl" | "es_es" | "id_id" | "da_dk" | "tr_tr" => (",", "."),
        _ => return Err(Refusal::new(format!("the locale {locale}"))),
    };
    let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind.clone()).collect();
    let most = i128::from(if mysql { MAX_SCALE } else { MAX_SCALE_MARIADB });
    // A date or time with a fraction is a double here.
    let exact = super::exact_scale(&kinds[0], mysql).is_some() && !kinds[0].is_temporal();
    Ok(Typed::call(Kind::Text(Collating::literal(None)), operands, move |values| {
        let Some(digits) = values[1].whole(&kinds[1])? else { return Ok(Datum::Null) };
        let digits = digits.clamp(0, most) as u8;
        let text = match values[0].number(&kinds[0])? {
            None => return Ok(Datum::Null),
            Some(number) if !exact => of_double(number.to_f64(), digits, mysql)?,
            Some(_) => match conversions::exact(&values[0], &kinds[0])? {
                Some(number) => number.rounded(digits)?.text(),
                None => return Ok(Datum::Null),
            },
        };
        Ok(Datum::Text(grouped(&text, point, group)))
    }))
}

fn of_double(number: f64, digits: u8, mysql: bool) -> Result<String, Refusal> {
    let rounded = rounding::rounded(number, digits.into(), false);
    let exact = Decimal::of_double(rounded).ok_or_else(Refusal::digits)?;
    // MySQL shows the sign of a zero.
    let sign = if mysql && rounded == 0.0 && rounded.is_sign_negative() { "-" } else { "" };
    Ok(format!("{sign}{}", exact.rounded(digits)?.text()))
}

fn grouped(text: &str, point: &str, group: &str) -> String {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut out = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push_str(group);
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push_str(point);
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(grouped("-1234567.80", ".", ","), "-1,234,567.80");
        assert_eq!(grouped("123", ".", ","), "123");
        assert_eq!(of_double(0.045, 2, false).unwrap(), "0.04");
    }
}
