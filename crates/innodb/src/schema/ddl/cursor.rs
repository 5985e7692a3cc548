//! A place among the tokens of one statement.

use super::tokens::{Kind, Token, error_at};
use crate::{Error, Result};

#[derive(Clone)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, tokens: &'a [Token]) -> Cursor<'a> {
        Cursor { text, tokens, at: 0 }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub(super) fn peek(&self) -> Option<&'a Kind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    /// Moves past one token.
    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    /// An error at this place.
    pub(super) fn error(&self, what: impl std::fmt::Display) -> Error {
        let offset = self.tokens.get(self.at).map_or(self.text.len(), |token| token.start);
        error_at(self.text, offset, what)
    }

    /// The next word, in lower case, if it is a word.
    pub(super) fn word(&self) -> Option<String> {
        match self.peek() {
            Some(Kind::Word(word)) => Some(word.to_ascii_lowercase()),
            _ => None,
        }
    }

    /// Takes `word` if it comes next, in any case.
    pub(super) fn eat(&mut self, word: &str) -> bool {
        let comes = matches!(self.peek(), Some(Kind::Word(own)) if own.eq_ignore_ascii_case(word));
        self.at += usize::from(comes);
        comes
    }

    /// Takes `words` if they come next, all of them.
    pub(super) fn eat_all(&mut self, words: &[&str]) -> bool {
        let start = self.at;
        let all = words.iter().all(|word| self.eat(word));
        if !all {
            self.at = start;
        }
        all
    }

    pub(super) fn eat_symbol(&mut self, symbol: char) -> bool {
        let comes = matches!(self.peek(), Some(Kind::Symbol(own)) if *own == symbol);
        self.at += usize::from(comes);
        comes
    }

    pub(super) fn expect_symbol(&mut self, symbol: char) -> Result<()> {
        if self.eat_symbol(symbol) { Ok(()) } else { Err(self.error(format!("{symbol:?} is missing"))) }
    }

    /// A name, quoted or not.
    pub(super) fn name(&mut self) -> Result<String> {
        let name = match self.peek() {
            Some(Kind::Word(name) | Kind::Name(name) | Kind::Text(name)) => name.clone(),
            _ => return Err(self.error("a name is missing")),
        };
        self.at += 1;
        Ok(name)
    }

    /// A text in quotes.
    pub(super) fn text(&mut self) -> Result<String> {
        let Some(Kind::Text(text)) = self.peek() else {
            return Err(self.error("a text in quotes is missing"));
        };
        self.at += 1;
        Ok(text.clone())
    }

    /// A whole number.
    pub(super) fn number(&mut self) -> Result<u32> {
        let number = match self.peek() {
            Some(Kind::Number(digits)) => digits.parse().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| self.error("a number is missing"))?;
        self.at += 1;
        Ok(number)
    }

    /// Numbers in parentheses, if they come next: `(10,2)`.
    pub(super) fn numbers(&mut self) -> Result<Vec<u32>> {
        let mut numbers = Vec::new();
        if self.eat_symbol('(') {
            loop {
                numbers.push(self.number()?);
                if !self.eat_symbol(',') {
                    break;
                }
            }
            self.expect_symbol(')')?;
        }
        Ok(numbers)
    }

    /// Takes a group in parentheses if it comes next, and gives its inner text.
    pub(super) fn group(&mut self) -> Result<Option<&'a str>> {
        let Some(open) = self.tokens.get(self.at).filter(|token| token.kind == Kind::Symbol('(')) else {
            return Ok(None);
        };
        let mut depth = 0usize;
        for (distance, token) in self.tokens[self.at..].iter().enumerate() {
            match token.kind {
                Kind::Symbol('(') => depth += 1,
                Kind::Symbol(')') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.at += distance + 1;
                return Ok(Some(&self.text[open.end..token.start]));
            }
        }
        Err(self.error("a parenthesis has no end"))
    }

    /// Whether an item of a list ends here.
    pub(super) fn is_at_item_end(&self) -> bool {
        matches!(self.peek(), None | Some(Kind::Symbol(',' | ')')))
    }

    /// Moves to the end of an item of a list.
    pub(super) fn skip_item(&mut self) -> Result<()> {
        while !self.is_at_item_end() {
            self.skip_piece()?;
        }
        Ok(())
    }

    /// Moves past a token or a whole group.
    pub(super) fn skip_piece(&mut self) -> Result<()> {
        if self.group()?.is_none() {
            self.skip();
        }
        Ok(())
    }
}
