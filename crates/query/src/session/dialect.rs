//! The servers' SQL as the parser is to read it: MySQL's dialect with the precedence of both servers' grammars.
//!
//! From the loosest operator to the tightest: OR (`||`), XOR, AND, NOT, comparisons and IS, then BETWEEN, IN, LIKE and
//! REGEXP, `|`, `&`, shifts, sums, products with DIV and MOD, `^`, signs, `->`.

use std::any::TypeId;

use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, DateTimeField, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, Interval, ObjectName,
};
use datafusion::sql::sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::conversion;
use crate::{Error, ErrorKind, Result};

/// Deepest nesting that is parsed.
const MAX_DEPTH: usize = 128;

/// Parses one statement.
///
/// # Errors
/// `InvalidInput` if it is none, or several.
pub(super) fn parse(sql: &str) -> Result<Statement> {
    let invalid = |error: &dyn std::fmt::Display| Error::new(ErrorKind::InvalidInput, format!("{error}"));
    let parsed = |nests_joins: bool| {
        DFParserBuilder::new(sql)
            .with_dialect(&ServerDialect { own: MySqlDialect {}, nests_joins })
            .with_recursion_limit(MAX_DEPTH)
            .build()
            .and_then(|mut parser| parser.parse_statements())
    };
    // `a JOIN b JOIN c ON ... ON ...` is nested; `a JOIN b LEFT JOIN c ON ...` is not, whose first join has no ON.
    let mut statements = match parsed(false) {
        Ok(statements) => statements,
        Err(error) => parsed(true).map_err(|_| error)?,
    };
    match (statements.pop_front(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        (None, _) => Err(invalid(&"there is no statement")),
        (Some(_), false) => Err(invalid(&"several statements where one is expected")),
    }
}

/// MySQL's dialect but for precedence.
#[derive(Debug)]
struct ServerDialect {
    own: MySqlDialect,
    /// Whether a join without ON before another one is joined with what that gives.
    nests_joins: bool,
}

/// Precedence of operators, larger is tighter.
mod precedence {
    pub(super) const OR: u8 = 5;
    pub(super) const XOR: u8 = 7;
    pub(super) const AND: u8 = 10;
    pub(super) const NOT: u8 = 15;
    pub(super) const COMPARISON: u8 = 18;
    pub(super) const PREDICATE: u8 = 20;
    pub(super) const BIT_OR: u8 = 24;
    pub(super) const BIT_AND: u8 = 25;
    pub(super) const SHIFT: u8 = 26;
    pub(super) const SUM: u8 = 30;
    pub(super) const PRODUCT: u8 = 40;
    pub(super) const BIT_XOR: u8 = 45;
    pub(super) const SIGN: u8 = 50;
    pub(super) const POSTFIX: u8 = 60;
    pub(super) const PERIOD: u8 = 100;
}

/// Words of other dialects that are names of columns without AS on the servers,
const COLUMN_NAMES: [Keyword; 10] = [
    Keyword::CLUSTER,
    Keyword::DISTRIBUTE,
    Keyword::END,
    Keyword::EXCLUDE,
    Keyword::MINUS,
    Keyword::OFFSET,
    Keyword::RETURNING,
    Keyword::SORT,
    Keyword::TOP,
    Keyword::VIEW,
];

/// and of tables.
const TABLE_NAMES: [Keyword; 23] = [
    Keyword::ANTI,
    Keyword::ARRAY,
    Keyword::ASOF,
    Keyword::CLUSTER,
    Keyword::CONNECT,
    Keyword::DISTRIBUTE,
    Keyword::END,
    Keyword::FORMAT,
    Keyword::GLOBAL,
    Keyword::MATCH_RECOGNIZE,
    Keyword::MINUS,
    Keyword::OPEN,
    Keyword::OUTPUT,
    Keyword::PIVOT,
    Keyword::PREWHERE,
    Keyword::SAMPLE,
    Keyword::SEMI,
    Keyword::SETTINGS,
    Keyword::SORT,
    Keyword::START,
    Keyword::TOP,
    Keyword::UNPIVOT,
    Keyword::VIEW,
];

impl ServerDialect {
    /// Precedence of an operator that is written as a word.
    fn of_word(keyword: Keyword, parser: &Parser) -> Option<u8> {
        Some(match keyword {
            Keyword::OR => precedence::OR,
            Keyword::XOR => precedence::XOR,
            Keyword::AND => precedence::AND,
            Keyword::IS => precedence::COMPARISON,
            Keyword::BETWEEN | Keyword::IN | Keyword::LIKE | Keyword::RLIKE | Keyword::REGEXP => {
                precedence::PREDICATE
            }
            Keyword::NOT => match &parser.peek_nth_token_ref(1).token {
                Token::Word(word) if word.keyword != Keyword::NOT => Self::of_word(word.keyword, parser)
                    .filter(|precedence| *precedence == precedence::PREDICATE)?,
                _ => return None,
            },
            Keyword::DIV | Keyword::MOD => precedence::PRODUCT,
            _ => return None,
        })
    }

    /// Whether `SOUNDS LIKE` comes next.
    fn sounds_like(parser: &Parser) -> bool {
        let is = |at: usize, name: &str| match &parser.peek_nth_token_ref(at).token {
            Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name),
            _ => false,
        };
        is(0, "sounds") && is(1, "like")
    }
}

/// Implements methods of the dialect that are true of the servers.
macro_rules! supports {
    ($($method:ident),* $(,)?) => {
        $(fn $method(&self) -> bool {
            true
        })*
    };
}

impl Dialect for ServerDialect {
    fn dialect(&self) -> TypeId {
        TypeId::of::<MySqlDialect>()
    }

    fn is_identifier_start(&self, letter: char) -> bool {
        self.own.is_identifier_start(letter)
    }

    fn is_identifier_part(&self, letter: char) -> bool {
        self.own.is_identifier_part(letter)
    }

    fn is_delimited_identifier_start(&self, letter: char) -> bool {
        self.own.is_delimited_identifier_start(letter)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        self.own.identifier_quote_style(identifier)
    }

    supports!(
        supports_string_literal_backslash_escape,
        supports_string_literal_concatenation,
        ignores_wildcard_escapes,
        supports_numeric_prefix,
        supports_bitwise_shift_operators,
        supports_multiline_comment_hints,
        supports_bang_not_operator,
        require_interval_qualifier,
        supports_limit_comma,
        supports_table_hints,
        supports_group_by_with_modifier,
        requires_single_line_comment_whitespace,
        supports_match_against,
        supports_select_modifiers,
        supports_set_names,
        supports_comma_separated_set_assignments,
        supports_data_type_signed_suffix,
        supports_cross_join_constraint,
        supports_double_ampersand_operator,
        supports_binary_kw_as_cast,
        supports_comment_optimizer_hint,
        allow_extract_custom,
    );

    fn supports_left_associative_joins_without_parens(&self) -> bool {
        !self.nests_joins
    }

    fn is_column_alias(&self, keyword: &Keyword, parser: &mut Parser) -> bool {
        COLUMN_NAMES.contains(keyword) || self.own.is_column_alias(keyword, parser)
    }

    fn is_table_factor_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser) -> bool {
        TABLE_NAMES.contains(keyword) || self.own.is_table_factor_alias(explicit, keyword, parser)
    }

    fn prec_value(&self, operator: Precedence) -> u8 {
        match operator {
            Precedence::Or => precedence::OR,
            Precedence::Xor => precedence::XOR,
            Precedence::And => precedence::AND,
            Precedence::UnaryNot => precedence::NOT,
            Precedence::Is | Precedence::Eq => precedence::COMPARISON,
            Precedence::Between | Precedence::Like => precedence::PREDICATE,
            Precedence::Pipe => precedence::BIT_OR,
            Precedence::Ampersand => precedence::BIT_AND,
            Precedence::PlusMinus => precedence::SUM,
            Precedence::MulDivModOp => precedence::PRODUCT,
            Precedence::Caret => precedence::BIT_XOR,
            Precedence::Period => precedence::PERIOD,
            _ => precedence::POSTFIX,
        }
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<std::result::Result<u8, ParserError>> {
        let precedence = match &parser.peek_token_ref().token {
            Token::Word(_) if Self::sounds_like(parser) => precedence::PREDICATE,
            Token::Word(word) => Self::of_word(word.keyword, parser)?,
            Token::StringConcat => precedence::OR,
            Token::Overlap => precedence::AND,
            Token::ShiftLeft | Token::ShiftRight => precedence::SHIFT,
            Token::Caret => precedence::BIT_XOR,
            Token::Arrow | Token::LongArrow => precedence::POSTFIX,
            _ => return None,
        };
        Some(Ok(precedence))
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<std::result::Result<Expr, ParserError>> {
        // `BINARY of` binds as signs do.
        match &parser.peek_token_ref().token {
            Token::Word(word) if word.keyword == Keyword::BINARY && word.quote_style.is_none() => {}
            Token::Word(word) if word.keyword == Keyword::INTERVAL && word.quote_style.is_none() => {
                return parser.maybe_parse(interval).transpose();
            }
            _ => return conversion::parse(parser),
        }
        parser.advance_token();
        let operand = parser.parse_subexpr(precedence::SIGN);
        Some(operand.map(|operand| Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(operand),
            data_type: DataType::Binary(None),
            array: false,
            format: None,
        }))
    }

    fn parse_infix(
        &self,
        parser: &mut Parser,
        left: &Expr,
        precedence: u8,
    ) -> Option<std::result::Result<Expr, ParserError>> {
        if Self::sounds_like(parser) {
            parser.advance_token();
            parser.advance_token();
            let right = parser.parse_subexpr(precedence);
            return Some(right.map(|right| Expr::BinaryOp {
                left: Box::new(function("soundex", vec![left.clone()])),
                op: BinaryOperator::Eq,
                right: Box::new(function("soundex", vec![right])),
            }));
        }
        let operator = match parser.peek_token_ref().token {
            Token::Word(ref word) if word.keyword == Keyword::DIV => BinaryOperator::MyIntegerDivide,
            Token::Word(ref word) if word.keyword == Keyword::MOD => BinaryOperator::Modulo,
            _ => return None,
        };
        parser.advance_token();
        let right = parser.parse_subexpr(precedence);
        Some(right.map(|right| Expr::BinaryOp {
            left: Box::new(left.clone()),
            op: operator,
            right: Box::new(right),
        }))
    }
}

/// Units of several parts, which the parser does not know.
const UNITS: [&str; 11] = [
    "SECOND_MICROSECOND",
    "MINUTE_MICROSECOND",
    "MINUTE_SECOND",
    "HOUR_MICROSECOND",
    "HOUR_SECOND",
    "HOUR_MINUTE",
    "DAY_MICROSECOND",
    "DAY_SECOND",
    "DAY_MINUTE",
    "DAY_HOUR",
    "YEAR_MONTH",
];

/// `INTERVAL(n, a, b)`, which is a function, or `INTERVAL '1:30' HOUR_MINUTE`; an error for other intervals.
fn interval(parser: &mut Parser) -> std::result::Result<Expr, ParserError> {
    let name = parser.parse_identifier()?;
    if let Some(call) = parser.maybe_parse(|parser| interval_function(parser, &name))? {
        return Ok(call);
    }
    let value = Box::new(parser.parse_expr()?);
    let unit = parser.parse_identifier()?;
    if !UNITS.iter().any(|known| unit.value.eq_ignore_ascii_case(known)) {
        return Err(ParserError::ParserError(format!("the unit {unit}")));
    }
    Ok(Expr::Interval(Interval {
        value,
        leading_field: Some(DateTimeField::Custom(unit)),
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }))
}

fn interval_function(parser: &mut Parser, name: &Ident) -> std::result::Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let operands = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    if operands.len() < 2 {
        return Err(ParserError::ParserError("an interval in parentheses".to_string()));
    }
    Ok(function(&name.value, operands))
}

/// A call of a function.
pub(super) fn function(name: &str, operands: Vec<Expr>) -> Expr {
    let args = operands.into_iter().map(|operand| FunctionArg::Unnamed(FunctionArgExpr::Expr(operand)));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(expression: &str) -> String {
        fn show(expression: &Expr) -> String {
            match expression {
                Expr::BinaryOp { left, op, right } => format!("({} {op} {})", show(left), show(right)),
                Expr::UnaryOp { op, expr } => format!("({op} {})", show(expr)),
                Expr::Between { expr, low, high, .. } => {
                    format!("({} between {} and {})", show(expr), show(low), show(high))
                }
                Expr::IsNull(of) => format!("({} is null)", show(of)),
                other => other.to_string(),
            }
        }
        let Statement::Statement(statement) = parse(&format!("select {expression}")).unwrap() else {
            panic!("no statement")
        };
        let datafusion::sql::sqlparser::ast::Statement::Query(query) = *statement else { panic!("no query") };
        let Some(select) = query.body.as_select() else { panic!("no select") };
        match &select.projection[0] {
            datafusion::sql::sqlparser::ast::SelectItem::UnnamedExpr(of) => show(of),
            other => other.to_string(),
        }
    }

    #[test]
    fn operators_bind_as_in_the_servers_grammars() {
        assert_eq!(grouped("7 DIV 2 + 1"), "((7 DIV 2) + 1)");
        assert_eq!(grouped("a - b MOD 3 * 2"), "(a - ((b % 3) * 2))");
        assert_eq!(grouped("2 * 3 ^ 1"), "(2 * (3 ^ 1))");
        assert_eq!(grouped("1 | 2 & 3 << 1 + 1"), "(1 | (2 & (3 << (1 + 1))))");
        assert_eq!(grouped("a || b XOR c AND d"), "(a || (b XOR (c AND d)))");
        assert_eq!(grouped("a = b BETWEEN 1 AND 2"), "(a = (b between 1 and 2))");
        assert_eq!(grouped("NOT a = 1 AND b"), "((NOT (a = 1)) AND b)");
        assert_eq!(grouped("a = b IS NULL"), "((a = b) is null)");
        assert_eq!(grouped("BINARY a = b"), "(CAST(a AS BINARY) = b)");
        assert_eq!(grouped("a SOUNDS LIKE b AND c"), "((soundex(a) = soundex(b)) AND c)");
        assert_eq!(grouped("INTERVAL(5, 1) + 1"), "(INTERVAL(5, 1) + 1)");
        assert_eq!(grouped("a + INTERVAL '1:30' HOUR_MINUTE"), "(a + INTERVAL '1:30' HOUR_MINUTE)");
        assert_eq!(grouped("a + INTERVAL (1 + 1) DAY"), "(a + INTERVAL (1 + 1) DAY)");
    }

    #[test]
    fn character_sets_of_casts_are_read_in_every_spelling() {
        let latin1 = "CONVERT(a, CHAR(3) CHARACTER SET latin1)";
        assert_eq!(grouped("CAST(a AS CHAR(3) CHARACTER SET latin1)"), latin1);
        assert_eq!(grouped("cast(a as char(3) charset 'LATIN1')"), latin1);
        assert_eq!(grouped("cast(a as char(3) ascii)"), latin1);
        assert_eq!(grouped("convert(a, char(3) character set latin1)"), latin1);
        assert_eq!(grouped("convert(a, char unicode)"), "CONVERT(a, CHAR CHARACTER SET ucs2)");
        assert_eq!(grouped("CAST(a AS NCHAR(2))"), "CONVERT(a, CHAR(2) CHARACTER SET utf8mb3)");
        assert_eq!(grouped("CHAR(65, 66 USING utf8mb4)"), "CONVERT(CHAR(65, 66) USING utf8mb4)");
        assert_eq!(grouped("CHAR(65) || b"), "(CHAR(65) || b)");
        assert_eq!(grouped("CAST(a AS CHAR(3) CHARACTER SET binary)"), "CAST(a AS BINARY(3))");
        assert_eq!(grouped("CAST(a AS CHAR) + 1"), "(CAST(a AS CHAR) + 1)");
        assert_eq!(grouped("CONVERT(a, DECIMAL(3,1))"), "CONVERT(a, DECIMAL(3,1))");
        assert!(parse("select cast(a as char binary)").is_err());
    }

    #[test]
    fn casts_in_casts_are_parsed_once() {
        let deep = (0..40).fold("a".to_string(), |inner, _| format!("CAST({inner} AS CHAR)"));
        assert_eq!(grouped(&deep), deep);
    }
}
