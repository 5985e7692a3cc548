//! The shell on a terminal, which `script` (of util-linux) provides.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::directory;

/// How long a reaction may take before the test gives up.
const PATIENCE: Duration = Duration::from_secs(120);

struct Terminal {
    child: Child,
    keyboard: ChildStdin,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn start(state: &std::path::Path) -> Terminal {
        let command = format!(
            // Without `exec` the shell lives on beside the command, hears Ctrl-C as well, and ends with its own code.
            "exec '{}' sql --innodb '{}' --database tpch",
            env!("CARGO_BIN_EXE_tanada"),
            directory("mysql-9.7").display()
        );
        let mut child = Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .env("XDG_STATE_HOME", state)
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script, of the package bsdutils");
        let (keyboard, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Terminal { child, keyboard, screen, seen: String::new() }
    }

    fn type_text(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// Waits at most `patience` for `text` on the screen after what was waited for before.
    fn shows_within(&mut self, text: &str, patience: Duration) -> bool {
        loop {
            if let Some(position) = self.seen.find(text) {
                self.seen.drain(..position + text.len());
                return true;
            }
            match self.screen.recv_timeout(patience) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        assert!(self.shows_within(text, PATIENCE), "no {text:?} in {:?}", self.seen);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_session_in_the_shell() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(state.path());
    terminal.wait_for("type help");
    terminal.wait_for("tpch> ");
    terminal.type_text("select n_name\r");
    terminal.wait_for("-> ");
    terminal.type_text("from nation where n_nationkey = 0;\r");
    terminal.wait_for("| ALGERIA |");
    terminal.wait_for("1 row, ");
    terminal.wait_for("tpch> ");

    terminal.type_text("select wrong from nation;\r");
    terminal.wait_for("error: ");
    terminal.wait_for("tpch> ");

    terminal.type_text("help\r");
    terminal.wait_for("Ctrl-C cancels");
    terminal.wait_for("tpch> ");

    terminal.type_text("select count(*) from nati\t;\r");
    terminal.wait_for("|       25 |");
    terminal.wait_for("tpch> ");

    terminal.type_text("select n_nationkey, n_name from nation where n_nationkey = 1\\G\r");
    terminal.wait_for("1. row");
    terminal.wait_for("     n_name: ARGENTINA");
    terminal.wait_for("tpch> ");

    // Hours of work; a line says how far it is, and Ctrl-C reaches the query once it runs, and the prompt, harmlessly,
    // before and after.
    terminal.type_text("select count(*) from lineitem a, lineitem b where a.l_comment < b.l_comment;\r");
    terminal.wait_for(" %, ");
    let cancelled = (0..200).any(|_| {
        terminal.type_text("\x03");
        terminal.shows_within("cancelled", Duration::from_millis(300))
    });
    assert!(cancelled, "{:?}", terminal.seen);
    terminal.wait_for("tpch> ");
    // The last Ctrl-C may reach the prompt instead, and takes with it what is typed behind it.
    let answered = (0..20).any(|_| {
        terminal.type_text("select 40 + 2 as still_here;\r");
        terminal.shows_within("| still_here |", Duration::from_secs(6))
    });
    assert!(answered, "{:?}", terminal.seen);
    terminal.wait_for("1 row, ");
    terminal.wait_for("tpch> ");

    terminal.type_text("\\q\r");
    let status = terminal.child.wait().unwrap();
    assert!(status.success(), "{status} after {:?}", terminal.seen);
    let history = std::fs::read_to_string(state.path().join("tanada/history")).unwrap();
    assert!(history.contains("n_nationkey = 0"), "{history}");
}
