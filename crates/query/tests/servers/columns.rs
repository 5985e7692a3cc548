//! Column types of both servers, with values of them.

use crate::random::Random;
use crate::server::Kind;

/// Characters that a text column is given, by what its character set has.
const LATIN: [&str; 8] = ["a", "B", "z", "ä", "é", "ß", " ", "7"];
const ASCII: [&str; 6] = ["a", "B", "z", "-", " ", "7"];
const WIDE: [&str; 8] = ["a", "Z", "ä", "я", "漢", "字", " ", "€"];
const WIDEST: [&str; 8] = ["a", "Z", "ä", "я", "漢", "😀", " ", "€"];

/// How a string is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Fixed,
    Variable,
    /// TINYTEXT, TEXT, MEDIUMTEXT or LONGTEXT, by the bytes of its length.
    Large(u8),
}

/// A column's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Integer {
        bytes: u8,
        unsigned: bool,
    },
    Bit(u8),
    Decimal {
        precision: u8,
        scale: u8,
    },
    Float,
    Double,
    Year,
    Date,
    Time(u8),
    DateTime(u8),
    Timestamp(u8),
    Text {
        form: Form,
        length: u32,
        charset: &'static str,
    },
    Bytes {
        form: Form,
        length: u32,
    },
    /// ENUM and SET with so many elements.
    Enum(u8),
    Set(u8),
    Json,
    Geometry,
    Uuid,
    Inet6,
    Inet4,
}

const INTEGERS: [(u8, &str); 5] =
    [(1, "tinyint"), (2, "smallint"), (3, "mediumint"), (4, "int"), (8, "bigint")];
const LARGE: [&str; 4] = ["tiny", "", "medium", "long"];

impl Type {
    /// Any type that the server has.
    pub fn any(random: &mut Random, kind: Kind) -> Type {
        let digits = random.below(7) as u8;
        match random.below(32) {
            0..=8 => {
                Type::Integer { bytes: random.pick(&[1, 2, 3, 4, 4, 4, 8]), unsigned: random.chance(30) }
            }
            9 => Type::Bit(random.between(1, 64) as u8),
            10 | 11 => {
                let precision = random.between(1, 65) as u8;
                let scale = random.below(u64::from(precision.min(30)) + 1) as u8;
                Type::Decimal { precision, scale }
            }
            12 => Type::Float,
            13 => Type::Double,
            14 => Type::Year,
            15 => Type::Date,
            16 => Type::Time(digits),
            17 => Type::DateTime(digits),
            18 => Type::Timestamp(digits),
            19..=24 => Type::text(random),
            25 | 26 => Type::bytes(random),
            27 => Type::Enum(random.pick(&[1, 3, 40])),
            28 => Type::Set(random.pick(&[1, 5, 11, 33])),
            29 => Type::Json,
            30 if random.chance(50) => Type::Geometry,
            _ if kind.is_mysql() => Type::Integer { bytes: 4, unsigned: false },
            _ => random.pick(&[Type::Uuid, Type::Inet6, Type::Inet4]),
        }
    }

    fn text(random: &mut Random) -> Type {
        let charset =
            random.pick(&["latin1", "latin1", "utf8mb4", "utf8mb4", "utf8mb3", "ascii", "ucs2", "utf16"]);
        match random.below(10) {
            0..=2 => Type::Text { form: Form::Fixed, length: random.pick(&[1, 3, 10, 40]), charset },
            3..=7 => Type::Text {
                form: Form::Variable,
                length: random.pick(&[1, 5, 20, 63, 100, 255, 300, 900]),
                charset,
            },
            _ => Type::Text { form: Form::Large(random.between(1, 4) as u8), length: 0, charset },
        }
    }

    fn bytes(random: &mut Random) -> Type {
        match random.below(4) {
            0 => Type::Bytes { form: Form::Fixed, length: random.pick(&[1, 4, 16, 255]) },
            1 | 2 => Type::Bytes { form: Form::Variable, length: random.pick(&[1, 16, 255, 256, 1000]) },
            _ => Type::Bytes { form: Form::Large(random.between(1, 4) as u8), length: 0 },
        }
    }

    /// The type in SQL.
    pub fn sql(self) -> String {
        let fractional = |name: &str, digits: u8| match digits {
            0 => name.to_owned(),
            digits => format!("{name}({digits})"),
        };
        match self {
            Type::Integer { bytes, unsigned } => {
                let name = INTEGERS.iter().find(|(of, _)| *of == bytes).unwrap().1;
                format!("{name}{}", if unsigned { " unsigned" } else { "" })
            }
            Type::Bit(bits) => format!("bit({bits})"),
            Type::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
            Type::Float => "float".to_owned(),
            Type::Double => "double".to_owned(),
            Type::Year => "year".to_owned(),
            Type::Date => "date".to_owned(),
            Type::Time(digits) => fractional("time", digits),
            Type::DateTime(digits) => fractional("datetime", digits),
            Type::Timestamp(digits) => fractional("timestamp", digits),
            Type::Text { form: Form::Fixed, length, charset } => {
                format!("char({length}) character set {charset}")
            }
            Type::Text { form: Form::Variable, length, charset } => {
                format!("varchar({length}) character set {charset}")
            }
            Type::Text { form: Form::Large(bytes), charset, .. } => {
                format!("{}text character set {charset}", LARGE[usize::from(bytes) - 1])
            }
            Type::Bytes { form: Form::Fixed, length } => format!("binary({length})"),
            Type::Bytes { form: Form::Variable, length } => format!("varbinary({length})"),
            Type::Bytes { form: Form::Large(bytes), .. } => format!("{}blob", LARGE[usize::from(bytes) - 1]),
            Type::Enum(elements) => format!("enum({})", elements_of(elements)),
            Type::Set(elements) => format!("set({})", elements_of(elements)),
            Type::Json => "json".to_owned(),
            Type::Geometry => "geometry".to_owned(),
            Type::Uuid => "uuid".to_owned(),
            Type::Inet6 => "inet6".to_owned(),
            Type::Inet4 => "inet4".to_owned(),
        }
    }

    /// Whether values are stored off-page where they are long: indexes need a prefix and defaults are restricted.
    pub fn is_large(self) -> bool {
        matches!(
            self,
            Type::Text { form: Form::Large(_), .. }
                | Type::Bytes { form: Form::Large(_), .. }
                | Type::Json
                | Type::Geometry
        )
    }

    /// The same type with room for more, as an ALTER may make it.
    pub fn widened(self, random: &mut Random) -> Option<Type> {
        Some(match self {
            Type::Integer { bytes, unsigned } if bytes < 8 => {
                Type::Integer { bytes: if bytes == 3 { 4 } else { (bytes * 2).min(8) }, unsigned }
            }
            Type::Decimal { precision, scale } if precision < 60 => {
                Type::Decimal { precision: precision + 5, scale }
            }
            Type::Text { form: Form::Fixed, length, charset } => {
                Type::Text { form: random.pick(&[Form::Fixed, Form::Variable]), length: length + 5, charset }
            }
            Type::Text { form: Form::Variable, length, charset } => match random.below(4) {
                0 => Type::Text { form: Form::Large(2), length: 0, charset },
                _ => {
                    Type::Text { form: Form::Variable, length: length + random.pick(&[1, 50, 200]), charset }
                }
            },
            Type::Bytes { form: form @ (Form::Fixed | Form::Variable), length }
                if length <= 250 || form == Form::Variable =>
            {
                Type::Bytes { form, length: length + random.pick(&[1, 5]) }
            }
            Type::Enum(elements) => Type::Enum(elements + 2),
            Type::Set(elements) if elements < 60 => Type::Set(elements + 4),
            _ => return None,
        })
    }

    /// A value that may be a default: a literal, not an expression.
    pub fn default(self, random: &mut Random) -> Option<String> {
        if let Type::Text { form: Form::Variable, length: 9000, .. } = self {
            let count = random.between(0, 9000) as usize;
            return Some(format!("'{}'", "d".repeat(count)));
        }
        Some(self.value(random)).filter(|value| !value.starts_with("repeat("))
    }

    /// A value as a literal or an expression.
    pub fn value(self, random: &mut Random) -> String {
        match self {
            Type::Integer { bytes, unsigned } => integer(random, bytes, unsigned),
            Type::Bit(bits) => format!("{}", random.below(1 << bits.min(62))),
            Type::Decimal { precision, scale } => decimal(random, precision, scale),
            Type::Float | Type::Double => {
                random.pick(&["0", "-1.5", "3.25e10", "1e-5", "123456", "0.1"]).to_owned()
            }
            Type::Year => random.pick(&["1901", "1999", "2024", "2155"]).to_owned(),
            Type::Date => format!("'{}'", date(random, 1000)),
            Type::Time(digits) => {
                let sign = if random.chance(20) { "-" } else { "" };
                format!(
                    "'{sign}{:02}:{:02}:{:02}{}'",
                    random.below(838),
                    random.below(60),
                    random.below(60),
                    fraction(random, digits)
                )
            }
            Type::DateTime(digits) => {
                format!("'{} {}{}'", date(random, 1000), clock(random), fraction(random, digits))
            }
            Type::Timestamp(digits) => {
                format!(
                    "'{:04}-{:02}-{:02} {}{}'",
                    random.between(1971, 2037),
                    random.between(1, 12),
                    random.between(1, 28),
                    clock(random),
                    fraction(random, digits)
                )
            }
            Type::Text { form, length, charset } => text(random, form, length, charset),
            Type::Bytes { form, length } => bytes(random, form, length),
            Type::Enum(elements) => format!("'e{}'", random.below(u64::from(elements))),
            Type::Set(elements) => {
                let chosen = (0..random.below(4)).map(|_| format!("e{}", random.below(u64::from(elements))));
                format!("'{}'", chosen.collect::<Vec<_>>().join(","))
            }
            Type::Json => random
                .pick(&["'{\"a\": 1, \"b\": [true, null]}'", "'[1, 2, 3]'", "'\"text\"'", "'{}'"])
                .to_owned(),
            Type::Geometry => format!("st_geomfromtext('POINT({} {})')", random.below(90), random.below(90)),
            Type::Uuid => {
                format!("'{:08x}-e89b-12d3-a456-{:012x}'", random.below(1 << 32), random.below(1 << 48))
            }
            Type::Inet6 => format!("'2001:db8::{:x}'", random.below(0xffff)),
            Type::Inet4 => format!("'10.{}.{}.1'", random.below(256), random.below(256)),
        }
    }
}

fn elements_of(count: u8) -> String {
    (0..count).map(|no| format!("'e{no}'")).collect::<Vec<_>>().join(",")
}

fn integer(random: &mut Random, bytes: u8, unsigned: bool) -> String {
    let bits = u32::from(bytes) * 8;
    let (least, most) = match unsigned {
        true => (0, (1i128 << bits) - 1),
        false => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
    };
    match random.below(6) {
        0 => least.to_string(),
        1 => most.to_string(),
        2 if !unsigned => format!("-{}", random.below(120)),
        _ => random.below(120).to_string(),
    }
}

fn decimal(random: &mut Random, precision: u8, scale: u8) -> String {
    let mut digits = |count: u8| {
        let count = random.below(u64::from(count) + 1);
        (0..count).map(|_| char::from(b'0' + random.below(10) as u8)).collect::<String>()
    };
    let [whole, fraction] = [digits(precision - scale), digits(scale)]
        .map(|digits| if digits.is_empty() { "0".to_owned() } else { digits });
    let sign = if random.chance(40) { "-" } else { "" };
    format!("{sign}{whole}.{fraction}")
}

fn date(random: &mut Random, least_year: u64) -> String {
    format!(
        "{:04}-{:02}-{:02}",
        random.between(least_year, 9999),
        random.between(1, 12),
        random.between(1, 28)
    )
}

fn clock(random: &mut Random) -> String {
    format!("{:02}:{:02}:{:02}", random.below(24), random.below(60), random.below(60))
}

fn fraction(random: &mut Random, digits: u8) -> String {
    match digits {
        0 => String::new(),
        digits => {
            format!(".{:0width$}", random.below(10u64.pow(u32::from(digits))), width = usize::from(digits))
        }
    }
}

/// The most characters that a value is given, and those of a long one.
fn lengths(form: Form, length: u32) -> (u64, u64) {
    match form {
        Form::Fixed | Form::Variable => (u64::from(length).min(30), u64::from(length)),
        Form::Large(1) => (30, 60),
        Form::Large(2) => (30, 12_000),
        Form::Large(_) => (30, 40_000),
    }
}

fn text(random: &mut Random, form: Form, length: u32, charset: &str) -> String {
    let letters: &[&str] = match charset {
        "latin1" => &LATIN,
        "ascii" => &ASCII,
        "utf8mb3" | "ucs2" => &WIDE,
        _ => &WIDEST,
    };
    let (short, long) = lengths(form, length);
    if random.chance(8) {
        let letter = random.pick(letters);
        return format!("repeat('{letter}',{})", random.between(long / 2, long));
    }
    let count = random.below(short + 1);
    format!("'{}'", (0..count).map(|_| random.pick(letters)).collect::<String>())
}

fn bytes(random: &mut Random, form: Form, length: u32) -> String {
    let (short, long) = lengths(form, length);
    if random.chance(8) {
        return format!("repeat(x'{:02X}',{})", random.below(256), random.between(long / 2, long));
    }
    let count = random.below(short.min(12) + 1);
    format!("x'{}'", (0..count).map(|_| format!("{:02X}", random.below(256))).collect::<String>())
}
