//! The interactive shell: history, statements over several lines, a cost line after each; Ctrl-C cancels the query, not
//! the shell.

use std::cell::RefCell;
use std::io::BufWriter;
use std::path::PathBuf;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Context, Editor, Helper, Highlighter, Hinter, Validator};
use tanada_query::Session;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use super::statement::Display;
use super::words::Words;
use super::{cost, interrupt, statement};
use crate::failure::{Failure, Outcome};
use crate::format::Format;

const MAX_HISTORY_LINES: usize = 10_000;

const HELP: &str = r"Statements end with ; and may have several lines. \G instead of ; shows each column on a line of its own.
  show databases; use NAME; show tables; describe TABLE;
  explain SELECT ...;                          the plan, and why
  explain analyze SELECT ...;                  the plan with rows, I/Os, bytes and depth per operator
  set tanada.execution = 'in_order';           one I/O at a time; 'out_of_order' is the default
  set tanada.io_depth = 64;                    at most so many I/Os in flight; 0 adapts
  help  \h      this text
  quit  exit  \q  Ctrl-D    leave
Ctrl-C cancels a running query, or the text typed so far. Tab completes words, tables and columns.";

/// Reads and runs statements until the end of input.
pub fn run(runtime: &Runtime, session: &Session, format: Format) -> Outcome {
    let mut editor = editor(session, runtime)?;
    let interrupts = interrupt::watch()?;
    let history = history_file();
    if let Some(file) = &history {
        // The first session has no history yet.
        let _ = editor.load_history(file);
    }
    println!(
        "tanada {}. Statements end with ; - type help for help, \\q to leave.",
        env!("CARGO_PKG_VERSION")
    );
    let mut typed = String::new();
    loop {
        let prompt = if typed.is_empty() {
            format!("{}> ", session.database().unwrap_or_else(|| "tanada".to_owned()))
        } else {
            "     -> ".to_owned()
        };
        match editor.readline(&prompt) {
            Ok(line) => match read_line(&mut typed, &line) {
                Input::Incomplete => {}
                Input::Leave => break,
                Input::Help => println!("{HELP}"),
                Input::Statements(text) => {
                    // A history entry that cannot be kept is no reason to stop working.
                    let _ = editor.add_history_entry(text.trim());
                    run_typed(runtime, session, &text, format, &interrupts)?;
                }
            },
            Err(ReadlineError::Interrupted) => typed.clear(),
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(Failure::failed(format!("cannot read from the terminal: {error}"))),
        }
        if let Some(file) = &history {
            let _ = editor.save_history(file);
        }
    }
    Ok(())
}

/// What a line makes of the text typed so far.
#[derive(Debug, PartialEq, Eq)]
enum Input {
    Incomplete,
    Statements(String),
    Help,
    Leave,
}

fn read_line(typed: &mut String, line: &str) -> Input {
    if typed.is_empty() {
        match line.trim().trim_end_matches(';').to_ascii_lowercase().as_str() {
            "" => return Input::Incomplete,
            r"\q" | "quit" | "exit" => return Input::Leave,
            r"\h" | r"\?" | "help" | "?" => return Input::Help,
            _ => {}
        }
    }
    if !typed.is_empty() {
        typed.push('\n');
    }
    typed.push_str(line);
    if is_complete(typed) { Input::Statements(std::mem::take(typed)) } else { Input::Incomplete }
}

/// Whether `text` ends with a terminator (`;`, `\g`, `\G`) that ends a statement, not one within quotes or a comment.
fn is_complete(text: &str) -> bool {
    // A word put behind the text becomes a statement of its own exactly if the text before it was closed.
    let closed = Session::split(text).is_ok_and(|before| {
        Session::split(&format!("{text}\nx")).is_ok_and(|with_word| with_word.len() == before.len() + 1)
    });
    closed && [";", r"\g", r"\G"].iter().any(|end| text.contains(end))
}

/// Runs what was typed; a failed statement is shown and ends this input, not the shell.
fn run_typed(
    runtime: &Runtime,
    session: &Session,
    text: &str,
    format: Format,
    interrupts: &Notify,
) -> Outcome {
    let statements = match Session::statements(text) {
        Ok(statements) => statements,
        Err(error) => {
            statement::show(&error.into());
            return Ok(());
        }
    };
    let display = Display::new(format);
    for statement in statements {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let outcome = runtime.block_on(async {
            tokio::select! {
                outcome = statement::run(session, &statement, display, &mut out) => Some(outcome),
                _ = interrupts.notified() => None,
            }
        });
        match outcome {
            Some(Ok(report)) => {
                let _ = statement::warn(&report);
                println_after(out, &format!("{}\n", cost::line(&report)))?;
            }
            Some(Err(failure)) if failure.is_broken_pipe() => return Err(failure),
            Some(Err(failure)) => {
                println_after(out, "")?;
                statement::show(&failure);
                return Ok(());
            }
            None => {
                println_after(out, "")?;
                eprintln!("cancelled");
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Writes what `out` still holds, then `text`.
fn println_after(mut out: impl std::io::Write, text: &str) -> Outcome {
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

type ShellEditor = Editor<ShellHelper, FileHistory>;

fn editor(session: &Session, runtime: &Runtime) -> Outcome<ShellEditor> {
    let builder = Config::builder().completion_type(CompletionType::List).auto_add_history(false);
    let build = || -> rustyline::Result<ShellEditor> {
        let mut editor = Editor::with_config(builder.max_history_size(MAX_HISTORY_LINES)?.build())?;
        let words = Words::new(session, runtime.handle().clone());
        editor.set_helper(Some(ShellHelper { words: RefCell::new(words) }));
        Ok(editor)
    };
    build().map_err(|error| Failure::failed(format!("cannot start the shell: {error}; use -c or -f")))
}

/// `$XDG_STATE_HOME/tanada/history`, its folder made; none where there is no home.
fn history_file() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    let folder = state.join("tanada");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

#[derive(Helper, Hinter, Highlighter, Validator)]
struct ShellHelper {
    words: RefCell<Words>,
}

impl Completer for ShellHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = &line[..position];
        let start = before
            .rfind(|c: char| !c.is_alphanumeric() && c != '_' && c != '$')
            .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
        if start == position {
            return Ok((position, Vec::new()));
        }
        Ok((start, self.words.borrow_mut().starting_with(&before[start..])))
    }
}
