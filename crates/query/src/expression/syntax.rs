//! An expression's syntax: names, literals, operators by precedence, calls.
//!
//! MySQL writes every operation in parentheses, MariaDB only where they are needed, so precedence is that of
//! the servers' grammars, the loosest first: OR, XOR, AND, NOT, comparisons and IS, then BETWEEN, IN and LIKE,
//! `|`, `&`, shifts, sums, products with DIV and MOD, `^`, signs, COLLATE.

use super::Refusal;
use super::tokens::{Token, tokens};

/// Deepest nesting that is read.
const MAX_DEPTH: usize = 100;

/// Most operators in a row: each is a level of the tree.
const MAX_OPERATORS: usize = 300;

/// An expression before its names are resolved.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Syntax {
    Null,
    /// A number as it is written.
    Number(String),
    /// A string, and the character set of its introducer.
    Text(String, Option<String>),
    /// Bytes of a literal of hexadecimal digits or bits, and whether it is a number to MariaDB (`0x41`, `b'1'`).
    Hex(Vec<u8>, bool),
    /// TRUE or FALSE.
    Truth(bool),
    /// `DATE'...'`, `TIME'...'`, `TIMESTAMP'...'`: the word and the text.
    Temporal(String, String),
    /// A column.
    Column(String),
    /// An operator or function, by its name in lower case.
    Call(String, Vec<Syntax>),
    /// `INTERVAL n unit`: to add to a date.
    Interval(Box<Syntax>, String),
    /// `CAST(x AS type)`: the type's words and numbers.
    Cast(Box<Syntax>, CastType),
    /// `x COLLATE name`.
    Collate(Box<Syntax>, String),
    /// The operand of a simple CASE, its WHENs and its ELSE.
    Case(Option<Box<Syntax>>, Vec<(Syntax, Syntax)>, Option<Box<Syntax>>),
}

/// The type of a CAST.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CastType {
    /// Its words but those about character sets: `signed`, `char`.
    pub name: String,
    /// Lengths in parentheses.
    pub numbers: Vec<u32>,
    /// The character set.
    pub charset: Option<String>,
}

/// Parses the text of an expression.
///
/// # Errors
/// If it is not of the grammar that is known here.
pub(super) fn parse(text: &str) -> Result<Syntax, Refusal> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
    let syntax = parser.expression(0)?;
    match parser.tokens.get(parser.at) {
        None => Ok(syntax),
        Some(token) => Err(Refusal::new(format!("{token} is not expected"))),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

const OR: u8 = 1;
const XOR: u8 = 2;
const AND: u8 = 3;
const NOT: u8 = 4;
const COMPARISON: u8 = 5;
const PREDICATE: u8 = 6;
const BIT_OR: u8 = 7;
const ADDITION: u8 = 10;
const MULTIPLICATION: u8 = 11;
const SIGN: u8 = 13;
const COLLATE: u8 = 15;

/// Names of the binary operators and how tightly they bind.
fn binary(token: &Token) -> Option<(&'static str, u8)> {
    Some(match token {
        Token::Word(word) => match word.as_str() {
            "or" => ("or", OR),
            "xor" => ("xor", XOR),
            "and" => ("and", AND),
            "div" => ("div", MULTIPLICATION),
            "mod" => ("%", MULTIPLICATION),
            _ => return None,
        },
        Token::Symbol(symbol) => match *symbol {
            "&&" => ("and", AND),
            "=" | "<=>" | "<" | "<=" | ">" | ">=" | "<>" => (symbol, COMPARISON),
            "!=" => ("<>", COMPARISON),
            "|" => ("|", BIT_OR),
            "&" => ("&", 8),
            "<<" | ">>" => (symbol, 9),
            "+" | "-" => (symbol, ADDITION),
            "*" | "/" | "%" => (symbol, MULTIPLICATION),
            "^" => ("^", 12),
            "->" | "->>" => (symbol, 16),
            _ => return None,
        },
        _ => return None,
    })
}

impl Parser {
    fn word_at(&self, at: usize) -> &str {
        match self.tokens.get(at) {
            Some(Token::Word(word)) => word,
            _ => "",
        }
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.word_at(self.at) == word;
        self.at += usize::from(found);
        found
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Symbol(found)) if *found == symbol);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), Refusal> {
        if self.eat(symbol) { Ok(()) } else { Err(self.unexpected(symbol)) }
    }

    fn expect_word(&mut self, word: &str) -> Result<(), Refusal> {
        if self.eat_word(word) { Ok(()) } else { Err(self.unexpected(word)) }
    }

    fn unexpected(&self, wanted: &str) -> Refusal {
        let found = self.tokens.get(self.at).map_or_else(|| "the end".to_string(), |token| token.to_string());
        Refusal::new(format!("{wanted} is expected before {found}"))
    }

    fn word(&mut self) -> Result<String, Refusal> {
        match self.tokens.get(self.at) {
            Some(Token::Word(word)) => {
                self.at += 1;
                Ok(word.clone())
            }
            _ => Err(self.unexpected("a word")),
        }
    }

    /// An expression of operators that bind at least as tightly as `least`.
    fn expression(&mut self, least: u8) -> Result<Syntax, Refusal> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Refusal::new("the expression is nested too deeply"));
        }
        let mut left = self.prefix()?;
        let mut operators = 0;
        while let Some(next) = self.operation(&left, least)? {
            operators += 1;
            if operators > MAX_OPERATORS {
                return Err(Refusal::new("the expression has too many operators"));
            }
            left = next;
        }
        self.depth -= 1;
        Ok(left)
    }

    /// `left` with the operator behind it, if that binds tightly enough.
    fn operation(&mut self, left: &Syntax, least: u8) -> Result<Option<Syntax>, Refusal> {
        let Some(token) = self.tokens.get(self.at) else { return Ok(None) };
        if let Some((name, binds)) = binary(token) {
            if binds < least {
                return Ok(None);
            }
            self.at += 1;
            let right = self.expression(binds + 1)?;
            return Ok(Some(Syntax::Call(name.to_string(), vec![left.clone(), right])));
        }
        if least <= COLLATE && self.eat_word("collate") {
            let name = match self.tokens.get(self.at) {
                Some(Token::Name(name)) => {
                    self.at += 1;
                    name.clone()
                }
                _ => self.word()?,
            };
            return Ok(Some(Syntax::Collate(Box::new(left.clone()), name)));
        }
        if least <= COMPARISON && self.eat_word("is") {
            let negated = self.eat_word("not");
            let what = self.word()?;
            let call = Syntax::Call(format!("is {what}"), vec![left.clone()]);
            return Ok(Some(negate(negated, call)));
        }
        if least > PREDICATE {
            return Ok(None);
        }
        let negated = self.word_at(self.at) == "not"
            && matches!(self.word_at(self.at + 1), "in" | "between" | "like" | "regexp" | "rlike");
        self.at += usize::from(negated);
        if self.eat_word("between") {
            let low = self.expression(BIT_OR)?;
            self.expect_word("and")?;
            let high = self.expression(BIT_OR)?;
            return Ok(Some(negate(
                negated,
                Syntax::Call("between".to_string(), vec![left.clone(), low, high]),
            )));
        }
        if self.eat_word("in") {
            self.expect("(")?;
            let mut operands = vec![left.clone()];
            operands.extend(self.arguments()?);
            return Ok(Some(negate(negated, Syntax::Call("in".to_string(), operands))));
        }
        if self.eat_word("regexp") || self.eat_word("rlike") {
            let operands = vec![left.clone(), self.expression(BIT_OR)?];
            return Ok(Some(negate(negated, Syntax::Call("regexp".to_string(), operands))));
        }
        if self.eat_word("like") {
            let pattern = self.expression(BIT_OR)?;
            let mut operands = vec![left.clone(), pattern];
            if self.eat_word("escape") {
                operands.push(self.expression(BIT_OR)?);
            }
            return Ok(Some(negate(negated, Syntax::Call("like".to_string(), operands))));
        }
        Ok(None)
    }

    fn prefix(&mut self) -> Result<Syntax, Refusal> {
        if self.eat_word("not") {
            let operand = self.expression(NOT)?;
            return Ok(Syntax::Call("not".to_string(), vec![operand]));
        }
        for (symbol, name) in [("!", "not"), ("-", "negative"), ("~", "~"), ("+", "plus")] {
            if self.eat(symbol) {
                if let ("-", Some(Token::Number(number))) = (symbol, self.tokens.get(self.at)) {
                    let number = format!("-{number}");
                    self.at += 1;
                    return Ok(Syntax::Number(number));
                }
                let operand = self.expression(SIGN)?;
                return Ok(if name == "plus" {
                    operand
                } else {
                    Syntax::Call(name.to_string(), vec![operand])
                });
            }
        }
        let Some(token) = self.tokens.get(self.at).cloned() else { return Err(self.unexpected("a value")) };
        self.at += 1;
        match token {
            Token::Number(number) => Ok(Syntax::Number(number)),
            Token::Text { text, charset } => Ok(Syntax::Text(text, charset)),
            Token::Hex { bytes, is_number } => Ok(Syntax::Hex(bytes, is_number)),
            Token::Name(name) if self.eat("(") => {
                Ok(Syntax::Call(name.to_ascii_lowercase(), self.arguments()?))
            }
            Token::Name(mut name) => {
                while self.eat(".") {
                    match self.tokens.get(self.at).cloned() {
                        Some(Token::Name(inner)) => name = inner,
                        _ => return Err(self.unexpected("a column")),
                    }
                    self.at += 1;
                }
                Ok(Syntax::Column(name))
            }
            Token::Symbol("(") => {
                let inner = self.expression(0)?;
                if self.eat(",") {
                    let mut parts = vec![inner];
                    parts.extend(self.arguments()?);
                    return Ok(Syntax::Call("row".to_string(), parts));
                }
                self.expect(")")?;
                Ok(inner)
            }
            Token::Word(word) => self.of_word(word),
            Token::Symbol(symbol) => Err(Refusal::new(format!("`{symbol}` is not expected"))),
        }
    }

    fn of_word(&mut self, word: String) -> Result<Syntax, Refusal> {
        if let Some(Token::Text { text, charset: None }) = self.tokens.get(self.at)
            && matches!(word.as_str(), "date" | "time" | "timestamp")
        {
            let text = text.clone();
            self.at += 1;
            return Ok(Syntax::Temporal(word, text));
        }
        match word.as_str() {
            "null" => return Ok(Syntax::Null),
            "true" => return Ok(Syntax::Truth(true)),
            "false" => return Ok(Syntax::Truth(false)),
            "binary" => {
                let of = self.expression(SIGN)?;
                let wanted = CastType { name: "binary".to_string(), ..CastType::default() };
                return Ok(Syntax::Cast(Box::new(of), wanted));
            }
            "case" => return self.case(),
            "interval" => {
                if let Some(places) = self.interval_function()? {
                    return Ok(places);
                }
                let count = self.expression(0)?;
                let unit = self.word()?;
                // Some writings put the date last.
                if self.eat("+") {
                    let date = self.expression(ADDITION + 1)?;
                    let interval = Syntax::Interval(Box::new(count), unit);
                    return Ok(Syntax::Call("+".to_string(), vec![date, interval]));
                }
                return Ok(Syntax::Interval(Box::new(count), unit));
            }
            _ => {}
        }
        if !self.eat("(") {
            // A bare word is a column: only where quotes are not needed, in texts of old files.
            return Ok(Syntax::Column(word));
        }
        match word.as_str() {
            "cast" | "convert" => self.cast(),
            "extract" => {
                let unit = self.word()?;
                self.expect_word("from")?;
                let of = self.expression(0)?;
                self.expect(")")?;
                Ok(Syntax::Call(word, vec![Syntax::Text(unit, None), of]))
            }
            "trim" => self.trim(),
            "char" => {
                let (codes, charset) = self.arguments_before("using")?;
                let of = Syntax::Call(word, codes);
                if !charset {
                    return Ok(of);
                }
                let charset = Some(self.word()?);
                self.expect(")")?;
                let wanted = CastType { name: "char".to_string(), charset, ..CastType::default() };
                Ok(Syntax::Cast(Box::new(of), wanted))
            }
            "json_value" => self.json_value(),
            "timestampdiff" | "timestampadd" | "get_format" => {
                let unit = self.word()?;
                self.expect(",")?;
                let mut operands = vec![Syntax::Text(unit, None)];
                operands.extend(self.arguments()?);
                Ok(Syntax::Call(word, operands))
            }
            _ => Ok(Syntax::Call(word, self.arguments()?)),
        }
    }

    /// Arguments and the parenthesis behind them.
    fn arguments(&mut self) -> Result<Vec<Syntax>, Refusal> {
        let mut arguments = Vec::new();
        if self.eat(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression(0)?);
            if self.eat(")") {
                return Ok(arguments);
            }
            // SUBSTRING(a FROM 1 FOR 2), POSITION is left out.
            if !self.eat_word("from") && !self.eat_word("for") {
                self.expect(",")?;
            }
        }
    }

    /// Arguments before `word` or the parenthesis, whichever comes first, and whether the word does.
    fn arguments_before(&mut self, word: &str) -> Result<(Vec<Syntax>, bool), Refusal> {
        let mut arguments = vec![self.expression(0)?];
        while self.eat(",") {
            arguments.push(self.expression(0)?);
        }
        let has_word = self.eat_word(word);
        if !has_word {
            self.expect(")")?;
        }
        Ok((arguments, has_word))
    }

    /// `JSON_VALUE(document, path RETURNING CHAR(n))`, of which the length is a third operand.
    fn json_value(&mut self) -> Result<Syntax, Refusal> {
        let (mut operands, has_type) = self.arguments_before("returning")?;
        if has_type {
            self.expect_word("char")?;
            self.expect("(")?;
            operands.push(self.expression(0)?);
            self.expect(")")?;
            self.expect(")")?;
        }
        Ok(Syntax::Call("json_value".to_string(), operands))
    }

    /// `INTERVAL(a, b, ...)` behind its word; `None` if it is an interval of time.
    fn interval_function(&mut self) -> Result<Option<Syntax>, Refusal> {
        let begin = self.at;
        if self.eat("(") {
            let first = self.expression(0)?;
            if self.eat(",") {
                let mut operands = vec![first];
                operands.extend(self.arguments()?);
                return Ok(Some(Syntax::Call("interval".to_string(), operands)));
            }
        }
        self.at = begin;
        Ok(None)
    }

    fn case(&mut self) -> Result<Syntax, Refusal> {
        let operand = match self.word_at(self.at) {
            "when" => None,
            _ => Some(Box::new(self.expression(0)?)),
        };
        let mut whens = Vec::new();
        while self.eat_word("when") {
            let condition = self.expression(0)?;
            self.expect_word("then")?;
            whens.push((condition, self.expression(0)?));
        }
        let otherwise = match self.eat_word("else") {
            true => Some(Box::new(self.expression(0)?)),
            false => None,
        };
        self.expect_word("end")?;
        Ok(Syntax::Case(operand, whens, otherwise))
    }

    fn cast(&mut self) -> Result<Syntax, Refusal> {
        let value = Box::new(self.expression(0)?);
        if self.eat_word("using") {
            let charset = Some(self.word()?);
            self.expect(")")?;
            return Ok(Syntax::Cast(
                value,
                CastType { name: "char".to_string(), charset, ..CastType::default() },
            ));
        }
        if !self.eat_word("as") {
            self.expect(",")?;
        }
        let mut wanted = CastType { name: self.word()?, ..CastType::default() };
        loop {
            if self.eat(")") {
                return Ok(Syntax::Cast(value, wanted));
            }
            if self.eat("(") {
                while !self.eat(")") {
                    let Some(Token::Number(number)) = self.tokens.get(self.at) else {
                        return Err(self.unexpected("a length"));
                    };
                    wanted.numbers.push(number.parse().map_err(|_| Refusal::new("a length is too large"))?);
                    self.at += 1;
                    self.eat(",");
                }
                continue;
            }
            match self.word()?.as_str() {
                "charset" => wanted.charset = Some(self.word()?),
                "character" => {
                    self.expect_word("set")?;
                    wanted.charset = Some(self.word()?);
                }
                "integer" | "int" => {}
                other => return Err(Refusal::new(format!("CAST to {other} is not known"))),
            }
        }
    }

    fn trim(&mut self) -> Result<Syntax, Refusal> {
        let side = match self.word_at(self.at) {
            side @ ("both" | "leading" | "trailing") => side.to_string(),
            _ => String::new(),
        };
        self.at += usize::from(!side.is_empty());
        let name = if side.is_empty() { "trim both".to_string() } else { format!("trim {side}") };
        let first = self.expression(0)?;
        let operands = match self.eat_word("from") {
            true => vec![self.expression(0)?, first],
            false => vec![first],
        };
        self.expect(")")?;
        Ok(Syntax::Call(name, operands))
    }
}

fn negate(negated: bool, syntax: Syntax) -> Syntax {
    if negated { Syntax::Call("not".to_string(), vec![syntax]) } else { syntax }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_bind_as_in_the_servers() {
        let both =
            |left: &str, right: &str| assert_eq!(parse(left).unwrap(), parse(right).unwrap(), "{left}");
        both("`a` + 1 * 2", "(`a` + (1 * 2))");
        both("`a` MOD 2 = 0 and `b` is not null", "((`a` % 2) = 0) and (not (`b` is null))");
        both("`a` - 1 - 2", "((`a` - 1) - 2)");
        both("not `a` = 1", "(not (`a` = 1))");
        both("`a` between 1 and 2 or `b`", "((`a` between 1 and 2) or `b`)");
        both("`a` not in (1,2)", "not(`a` in (1,2))");
        both("`a` + `b` not in (1)", "not ((`a` + `b`) in (1))");
        both("`a` <> `b` like 'x'", "(`a` <> (`b` like 'x'))");
        both("`a` = `b` is null", "((`a` = `b`) is null)");
    }

    #[test]
    fn casts_and_cases_are_read() {
        let wanted = CastType { name: "char".into(), numbers: vec![10], charset: Some("utf8mb4".into()) };
        let cast = Syntax::Cast(Box::new(Syntax::Column("a".into())), wanted);
        assert_eq!(parse("cast(`a` as char(10) charset utf8mb4)").unwrap(), cast);
        assert!(matches!(parse("(case when (`a` > 1) then 2 else 3 end)").unwrap(), Syntax::Case(None, ..)));
        let places =
            Syntax::Call("interval".into(), vec![Syntax::Column("a".into()), Syntax::Number("5".into())]);
        assert_eq!(parse("interval(`a`,5)").unwrap(), places);
        assert!(parse("(`d` + interval (`a` + 1) day)").is_ok());
        let wanted = CastType { name: "char".into(), numbers: vec![], charset: Some("utf8mb4".into()) };
        let code = Syntax::Call("char".into(), vec![Syntax::Number("65".into())]);
        assert_eq!(parse("char(65 using utf8mb4)").unwrap(), Syntax::Cast(Box::new(code), wanted));
        assert!(parse("json_value(`j`, _utf8mb4'$.a' returning char(512))").is_ok());
        assert!(parse("json_value(`j`, _utf8mb4'$.a' returning signed)").is_err());
        assert!(parse("(`a` + ").is_err());
        assert!(parse(&"(".repeat(5000)).is_err());
        assert!(parse(&"1+".repeat(5000)).is_err());
        assert!(parse(&"not ".repeat(5000)).is_err());
    }
}
