//! Numbers of columns that print them otherwise than their type alone says: FLOAT(M,D), DOUBLE(M,D), ZEROFILL, YEAR(2).

use super::float::{double_text, fixed_text, float_text};

/// Width of a FLOAT and of a DOUBLE that are declared without one, in characters.
const FLOAT_WIDTH: usize = 12;
const DOUBLE_WIDTH: usize = 22;

/// How a column prints its numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NumberFormat {
    /// Digits after the point, of FLOAT(M,D) and DOUBLE(M,D).
    decimals: Option<usize>,
    /// Characters that zeros fill up to; 0 without ZEROFILL.
    zerofill_width: usize,
    /// Whether it is YEAR(2).
    is_short_year: bool,
}

impl NumberFormat {
    /// The format of a column of a type as `DESCRIBE` prints it, e.g. `float(5,2)` or `int(5) unsigned zerofill`.
    pub fn of_type(mysql_type: &str) -> NumberFormat {
        let (name, rest) = mysql_type.split_once('(').unwrap_or((mysql_type, ""));
        let name = name.split_once(' ').map_or(name, |(name, _)| name);
        let numbers = rest.split_once(')').map_or("", |(numbers, _)| numbers);
        let mut numbers = numbers.split(',').map_while(|number| number.parse::<usize>().ok());
        let (first, second) = (numbers.next(), numbers.next());
        let width = match (name, first, second) {
            ("decimal", Some(precision), scale) => {
                precision + usize::from(scale.is_some_and(|scale| scale > 0))
            }
            (_, Some(width), _) => width,
            ("float", ..) => FLOAT_WIDTH,
            ("double", ..) => DOUBLE_WIDTH,
            _ => 0,
        };
        NumberFormat {
            decimals: second.filter(|_| matches!(name, "float" | "double")),
            zerofill_width: if mysql_type.ends_with(" zerofill") { width } else { 0 },
            is_short_year: name == "year" && first == Some(2),
        }
    }

    /// Digits after the point of a FLOAT(M,D) or DOUBLE(M,D).
    pub fn decimals(self) -> Option<usize> {
        self.decimals
    }

    /// A FLOAT.
    pub fn float(self, number: f32) -> String {
        match self.decimals {
            Some(decimals) => fixed_text(number.into(), decimals),
            None => float_text(number),
        }
    }

    /// A DOUBLE.
    pub fn double(self, number: f64) -> String {
        match self.decimals {
            Some(decimals) => fixed_text(number, decimals),
            None => double_text(number),
        }
    }

    /// A YEAR.
    pub fn year(self, year: u16) -> String {
        if self.is_short_year { format!("{:02}", year % 100) } else { format!("{year:04}") }
    }

    /// Whether numbers are filled with zeros.
    pub fn is_zerofill(self) -> bool {
        self.zerofill_width > 0
    }

    /// Fills a printed number with zeros, if the column has ZEROFILL.
    pub fn filled(self, mut text: Vec<u8>) -> Vec<u8> {
        if let Some(missing) = self.zerofill_width.checked_sub(text.len()) {
            text.splice(0..0, std::iter::repeat_n(b'0', missing));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers and texts from a table of MariaDB 10.11 and of MySQL 9.7, which agree.
    #[test]
    fn floats_with_fixed_digits_are_rounded_to_them() {
        let float = |name: &str, number| NumberFormat::of_type(name).float(number);
        assert_eq!(float("float(5,2)", 1.1), "1.10");
        assert_eq!(float("float(5,2)", 999.99), "999.99");
        assert_eq!(float("float(12,1)", 123_456.8), "123456.8");
        assert_eq!(float("float(12,1)", 16_777_216.0), "16777216.0");
        assert_eq!(float("float(7,0)", 12.0), "12");
        assert_eq!(float("float", 123_456.8), "123457");
        assert_eq!(NumberFormat::of_type("double(8,3)").double(2.346), "2.346");
        assert_eq!(NumberFormat::of_type("double").double(2.346), "2.346");
        let wide = |number| NumberFormat::of_type("double(53,30)").double(number);
        assert_eq!(wide(0.1), "0.100000000000000000000000000000");
        assert_eq!(wide(1e20), "100000000000000000000.000000000000000000000000000000");
        assert_eq!(wide(-9.99999999995449e-6), "-0.000009999999999954490000000000");
    }

    #[test]
    fn zerofill_pads_to_the_width_of_the_column() {
        let filled = |name: &str, text: &str| {
            String::from_utf8(NumberFormat::of_type(name).filled(text.as_bytes().to_vec())).unwrap()
        };
        assert_eq!(filled("int(5) unsigned zerofill", "42"), "00042");
        assert_eq!(filled("int(5) unsigned zerofill", "1234567"), "1234567");
        assert_eq!(filled("decimal(8,2) unsigned zerofill", "3.50"), "000003.50");
        assert_eq!(filled("decimal(5,0) unsigned zerofill", "3"), "00003");
        assert_eq!(filled("float(8,2) unsigned zerofill", "3.50"), "00003.50");
        assert_eq!(filled("float unsigned zerofill", "1e20"), "000000001e20");
        assert_eq!(filled("double unsigned zerofill", "3.5"), "00000000000000000003.5");
        assert_eq!(filled("int unsigned", "42"), "42");
    }

    #[test]
    fn a_year_of_two_digits_is_printed_as_its_last_two() {
        assert_eq!(NumberFormat::of_type("year(2)").year(1999), "99");
        assert_eq!(NumberFormat::of_type("year(2)").year(0), "00");
        assert_eq!(NumberFormat::of_type("year").year(0), "0000");
    }
}
