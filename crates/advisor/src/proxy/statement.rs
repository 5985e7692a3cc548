//! Statements of a connection as they begin and end.

use tokio::sync::mpsc::Sender;

use crate::fingerprint::{Purpose, purpose};

/// Bytes of a statement that is looked at, at most.
pub const MAX_STATEMENT_BYTES: usize = 1 << 20;

/// What happened to statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// One was sent to the server.
    Begins {
        /// The statement of this connection,
        connection: u64,
        /// and its number there.
        no: u64,
        /// The default database, if it is known.
        database: Option<String>,
        /// The text, with values in the place of parameters.
        statement: String,
        /// The text as it was prepared, if it was: it is the same for all values.
        prepared: Option<String>,
    },
    /// All statements of the connection up to this number are over.
    Ends {
        /// The connection,
        connection: u64,
        /// and the number.
        no: u64,
    },
    /// Tables or statistics have changed.
    PlansChange,
}

/// What runs on a connection.
#[derive(Debug)]
pub struct Running {
    connection: u64,
    no: u64,
    runs: bool,
    may_have_ended: bool,
    changes_plans: bool,
    /// The default database.
    pub database: Option<String>,
    events: Sender<Event>,
}

impl Running {
    /// Nothing, so far.
    pub fn new(connection: u64, events: Sender<Event>) -> Running {
        let (runs, may_have_ended, changes_plans) = (false, false, false);
        Running { connection, no: 0, runs, may_have_ended, changes_plans, database: None, events }
    }

    /// The client sends these statements, separated by semicolons. What ran before is over.
    pub fn begin(&mut self, text: &str, prepared: Option<&str>) {
        self.end();
        for statement in split(text) {
            match purpose(statement) {
                Purpose::Reads => {
                    self.no += 1;
                    let begins = Event::Begins {
                        connection: self.connection,
                        no: self.no,
                        database: self.database.clone(),
                        statement: statement.to_owned(),
                        prepared: prepared.map(str::to_owned),
                    };
                    self.runs |= self.events.try_send(begins).is_ok();
                }
                Purpose::ChangesPlans => self.changes_plans = true,
                Purpose::Uses => {
                    let name = statement.trim().get(4..).unwrap_or_default();
                    let name = name.trim().trim_end_matches(';').trim();
                    self.database = Some(name.trim_matches('`').replace("``", "`"));
                }
                Purpose::Other => {}
            }
        }
        self.may_have_ended = false;
    }

    /// What came from the server ends an answer, or does not.
    pub fn answered(&mut self, ends: bool) {
        self.may_have_ended = ends && (self.runs || self.changes_plans);
    }

    /// Whether what runs is over unless the server says more.
    pub fn may_have_ended(&self) -> bool {
        self.may_have_ended
    }

    /// What runs is over.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.runs) {
            // If there is no space for this, the next that begins says it again.
            let ends = Event::Ends { connection: self.connection, no: self.no };
            self.runs =
                matches!(self.events.try_send(ends), Err(tokio::sync::mpsc::error::TrySendError::Full(_)));
        }
        if self.changes_plans {
            self.changes_plans = matches!(
                self.events.try_send(Event::PlansChange),
                Err(tokio::sync::mpsc::error::TrySendError::Full(_))
            );
        }
        self.may_have_ended = self.runs || self.changes_plans;
    }
}

/// The statements of a text, without what is empty.
pub fn split(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let (mut from, mut at, mut found) = (0, 0, Vec::new());
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\'' | b'"' | b'`' => {
                at += 1;
                while let Some(&inner) = bytes.get(at) {
                    if inner == b'\\' && byte != b'`' {
                        at += 1;
                    } else if inner == byte {
                        break;
                    }
                    at += 1;
                }
            }
            b'-' if bytes[at..].starts_with(b"-- ") => {
                at += bytes[at..].iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len() - at);
            }
            b'/' if bytes[at..].starts_with(b"/*") => {
                at += bytes[at..].windows(2).position(|pair| pair == b"*/").unwrap_or(bytes.len() - at);
            }
            b';' => {
                found.extend(text.get(from..at));
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    found.extend(text.get(from..));
    found.retain(|statement| !statement.trim().is_empty());
    found
}

/// A statement with values in the place of its parameters: `?`, or `$1` and so on; `None` if they do not fit.
pub fn with_values(text: &str, values: &[String]) -> Option<String> {
    let bytes = text.as_bytes();
    let (mut out, mut at, mut next) = (Vec::with_capacity(text.len()), 0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\'' | b'"' | b'`' => {
                let from = at;
                at += 1;
                while let Some(&inner) = bytes.get(at) {
                    if inner == b'\\' && byte == b'\'' {
                        at += 1;
                    } else if inner == byte {
                        break;
                    }
                    at += 1;
                }
                out.extend_from_slice(bytes.get(from..(at + 1).min(bytes.len()))?);
            }
            b'?' => {
                out.extend_from_slice(values.get(next)?.as_bytes());
                next += 1;
            }
            b'$' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => {
                let digits = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let no: usize = text.get(at + 1..at + 1 + digits)?.parse().ok()?;
                out.extend_from_slice(values.get(no.checked_sub(1)?)?.as_bytes());
                at += digits;
            }
            byte => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolons_in_texts_separate_nothing() {
        assert_eq!(split("select ';' ; select `;`;\n"), ["select ';' ", " select `;`"]);
        assert_eq!(split("select 'it\\'s;'"), ["select 'it\\'s;'"]);
        assert_eq!(split("/* ; */ select 1"), ["/* ; */ select 1"]);
    }

    #[test]
    fn values_take_the_place_of_parameters() {
        let values = ["1".to_owned(), "'x'".to_owned()];
        assert_eq!(
            with_values("a = ? and b = '?' or c = ?", &values).unwrap(),
            "a = 1 and b = '?' or c = 'x'"
        );
        assert_eq!(with_values("a = $2 and b = $1", &values).unwrap(), "a = 'x' and b = 1");
        assert_eq!(with_values("? ? ?", &values), None);
    }

    #[test]
    fn statements_end_with_the_next_and_a_full_queue_loses_no_end() {
        let (events, mut seen) = tokio::sync::mpsc::channel(1);
        let mut running = Running::new(7, events);
        running.begin("select 1", None);
        running.end();
        assert!(running.may_have_ended(), "the end had no space");
        assert!(matches!(seen.try_recv(), Ok(Event::Begins { connection: 7, no: 1, .. })));
        running.begin("use `a``b`", None);
        assert_eq!(seen.try_recv(), Ok(Event::Ends { connection: 7, no: 1 }));
        assert_eq!(running.database.as_deref(), Some("a`b"));
    }
}
