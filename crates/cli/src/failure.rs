//! How the command fails: an exit code and one line on stderr.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// Why the command stops.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    message: String,
}

/// Result of a subcommand.
pub type Outcome<T = ()> = Result<T, Failure>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The work failed: exit code 1.
    Failed,
    /// The arguments are wrong: exit code 2.
    Usage,
    /// All was done, but damaged pages were left out, so that rows are missing: exit code 3.
    RowsMissing,
    /// The reader of stdout went away (`tanada sql ... | head`): nothing to say, exit code 0.
    BrokenPipe,
}

impl Failure {
    /// The work failed.
    pub fn failed(message: impl fmt::Display) -> Failure {
        Failure { kind: Kind::Failed, message: message.to_string() }
    }
    /// The arguments are wrong.
    pub fn usage(message: impl fmt::Display) -> Failure {
        Failure { kind: Kind::Usage, message: message.to_string() }
    }
    /// Rows are missing from the output, as was said.
    pub fn rows_missing() -> Failure {
        Failure {
            kind: Kind::RowsMissing,
            message: "rows are missing from the results, see the warnings".to_owned(),
        }
    }
    /// Writing the output failed.
    pub fn output(error: &io::Error) -> Failure {
        let kind = if error.kind() == io::ErrorKind::BrokenPipe { Kind::BrokenPipe } else { Kind::Failed };
        Failure { kind, message: format!("cannot write the output: {error}") }
    }
    /// Whether the reader of the output went away.
    pub fn is_broken_pipe(&self) -> bool {
        self.kind == Kind::BrokenPipe
    }
    /// Writes the message to stderr and gives the exit code.
    pub fn report(&self) -> ExitCode {
        match self.kind {
            Kind::BrokenPipe => return ExitCode::SUCCESS,
            Kind::Failed | Kind::Usage | Kind::RowsMissing => eprintln!("tanada: {self}"),
        }
        ExitCode::from(match self.kind {
            Kind::Usage => 2,
            Kind::RowsMissing => 3,
            _ => 1,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&self.message))
    }
}

impl From<tanada_query::Error> for Failure {
    fn from(error: tanada_query::Error) -> Failure {
        Failure::failed(error)
    }
}

impl From<tanada_volume::Error> for Failure {
    fn from(error: tanada_volume::Error) -> Failure {
        Failure::failed(error)
    }
}

impl From<tanada_kv::Error> for Failure {
    fn from(error: tanada_kv::Error) -> Failure {
        match error.kind() {
            tanada_kv::ErrorKind::InvalidInput => Failure::usage(error),
            _ => Failure::failed(error),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::output(&error)
    }
}

/// The message without line breaks and runs of blanks: scripts and logs read errors by the line.
pub fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line() {
        assert_eq!(Failure::failed("first:\n  second\tthird \n").to_string(), "first: second third");
    }

    #[test]
    fn only_a_broken_pipe_is_quiet() {
        assert!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).is_broken_pipe());
        assert!(!Failure::from(io::Error::from(io::ErrorKind::StorageFull)).is_broken_pipe());
    }
}
