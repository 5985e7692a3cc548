//! Who to connect as. A password is never in a URL: command lines are seen by every user of a machine, and kept.
//!
//! A URL is `mysql://USER@HOST:PORT/DATABASE`, or with `?socket=PATH`; `postgres://` alike. The password comes from a
//! file, or from an environment variable.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The environment variable with the password.
pub const PASSWORD_VARIABLE: &str = "TANADA_PASSWORD";

/// A password, which is never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Password(Option<String>);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

impl Password {
    /// This one.
    pub fn new(password: impl Into<String>) -> Password {
        Password(Some(password.into()))
    }

    /// The first line of `file`, else what the environment has, else none.
    ///
    /// # Errors
    /// If the file cannot be read, or others than its owner may.
    pub fn find(file: Option<&Path>) -> Result<Password> {
        let Some(file) = file else { return Ok(Password(std::env::var(PASSWORD_VARIABLE).ok())) };
        let failed = |error: std::io::Error| Error::io(file.display(), error);
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(file).map_err(failed)?);
        if mode & 0o077 != 0 {
            let file = file.display();
            return Err(Error::invalid(format!(
                "{file}: others may read the password; run `chmod 600 {file}`"
            )));
        }
        let text = std::fs::read_to_string(file).map_err(failed)?;
        Ok(Password(Some(text.lines().next().unwrap_or_default().to_owned())))
    }

    pub(crate) fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// Where a server is, and who connects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Target {
    /// The user; the server's default if none.
    pub user: Option<String>,
    /// Host and port.
    pub address: Option<(String, u16)>,
    /// A socket instead.
    pub socket: Option<PathBuf>,
    /// The default database.
    pub database: Option<String>,
    /// The password.
    pub password: Password,
}

impl Target {
    /// From a URL of `scheme`, whose server listens at `port` by default.
    ///
    /// # Errors
    /// If it is none, or has a password.
    pub fn parse(url: &str, schemes: &[&str], port: u16, password: Password) -> Result<Target> {
        let scheme = schemes.first().copied().unwrap_or_default();
        let malformed = || {
            Error::invalid(format!(
                "this is no URL of the form {scheme}://USER@HOST:PORT/DATABASE or {scheme}://USER@/DATABASE?socket=PATH"
            ))
        };
        let (found, rest) = url.split_once("://").ok_or_else(malformed)?;
        if !schemes.contains(&found) {
            return Err(malformed());
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, host) =
            authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        if user.is_some_and(|user| user.contains(':')) || query.contains("password=") {
            return Err(Error::invalid(format!(
                "a password in the URL is seen by all users of this machine: put it into a file \
                 (--password-file FILE) or into {PASSWORD_VARIABLE}"
            )));
        }
        let mut target = Target { password, ..Target::default() };
        target.user = user.filter(|user| !user.is_empty()).map(decoded);
        target.database = Some(decoded(database)).filter(|database| !database.is_empty());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("socket" | "host", path)) => target.socket = Some(decoded(path).into()),
                _ => {
                    return Err(Error::invalid(format!(
                        "{pair:?} is no option of the URL; there is socket=PATH"
                    )));
                }
            }
        }
        if target.socket.is_none() {
            let (host, number) = match host.rsplit_once(':') {
                Some((host, number)) if !number.ends_with(']') => {
                    (host, number.parse().map_err(|_| malformed())?)
                }
                _ => (host, port),
            };
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let host = if host.is_empty() { "127.0.0.1" } else { host };
            target.address = Some((host.to_owned(), number));
        }
        Ok(target)
    }
}

/// With `%2F` and the like as the bytes that they stand for.
fn decoded(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let digits = others.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match (first, digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                rest = &others[2..];
            }
            _ => {
                out.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Target> {
        Target::parse(url, &["mysql", "mariadb"], 3306, Password::new("secret"))
    }

    #[test]
    fn urls_name_hosts_or_sockets() {
        let tcp = parse("mysql://root@db.example:3307/shop").unwrap();
        assert_eq!((tcp.user.as_deref(), tcp.address), (Some("root"), Some(("db.example".to_owned(), 3307))));
        let socket = parse("mariadb://root@/shop?socket=%2Frun%2Fs").unwrap();
        assert_eq!((socket.socket, socket.address), (Some("/run/s".into()), None));
        assert_eq!(parse("mysql://").unwrap().address, Some(("127.0.0.1".to_owned(), 3306)));
        assert!(parse("http://x").is_err() && parse("mysql://x:y").is_err());
    }

    #[test]
    fn passwords_in_urls_are_refused_and_never_shown() {
        let refused = parse("mysql://root:hunter2@h/").unwrap_err().to_string();
        assert!(refused.contains("--password-file") && !refused.contains("hunter2"), "{refused}");
        assert!(!format!("{:?}", parse("mysql://root@h/").unwrap()).contains("secret"));
    }

    #[test]
    fn password_files_of_others_are_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hunter2\n").unwrap();
        assert_eq!(Password::find(Some(file.path())).unwrap().text(), Some("hunter2"));
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        std::fs::set_permissions(file.path(), open).unwrap();
        assert!(Password::find(Some(file.path())).is_err());
    }
}
