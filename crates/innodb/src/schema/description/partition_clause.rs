//! What MariaDB's clause about partitions says: the method, and each partition with its bound, comment and
//! subpartitions.
//!
//! ```text
//! PARTITION BY RANGE (`a`)
//! SUBPARTITION BY HASH (`b`)
//! (PARTITION `p0` VALUES LESS THAN (10)
//!  (SUBPARTITION `s0` COMMENT = 'c' ENGINE = InnoDB))
//! ```
//!
//! Without a list partitions are called `p0`, `p1` ..., and their subpartitions `p0sp0`, `p0sp1` ...

use super::{PartitionDescription, PartitionedBy, SubpartitionDescription};

/// The most partitions that a server makes.
const MAX_PARTITIONS: usize = 8192;

/// Reads a clause; nothing if the table has none. `row_end` is the column that says when rows of a system-versioned
/// table ended.
pub(super) fn read(
    clause: &str,
    row_end: Option<String>,
) -> (Option<PartitionedBy>, Vec<PartitionDescription>) {
    let mut scanner = Scanner { rest: clause };
    if !scanner.take("PARTITION BY") {
        return (None, Vec::new());
    }
    let mut by = PartitionedBy::default();
    let is_by_system_time = scanner.take("SYSTEM_TIME");
    if is_by_system_time {
        by.method = "SYSTEM_TIME".to_owned();
        let column = row_end.unwrap_or_else(|| "row_end".to_owned());
        by.expression = Some(format!("unix_timestamp(`{}`)", column.replace('`', "``")));
        // Its interval or its limit ends with the line.
        scanner.rest = scanner.rest.split_once('\n').map_or("", |(_, rest)| rest);
    } else {
        (by.method, by.expression) = scanner.method();
    }
    let mut count = scanner.number_behind("PARTITIONS");
    let mut sub_count = 0;
    if scanner.take("SUBPARTITION BY") {
        let (method, expression) = scanner.method();
        (by.sub_method, by.sub_expression) = (Some(method), expression);
        sub_count = scanner.number_behind("SUBPARTITIONS").unwrap_or(1);
    }
    count = count.or_else(|| scanner.number_behind("PARTITIONS"));
    let mut partitions = match scanner.list("PARTITION") {
        Some(listed) => listed.into_iter().map(|item| item.partition(&by)).collect(),
        None => numbered(count.unwrap_or(1), is_by_system_time),
    };
    for partition in partitions.iter_mut().filter(|partition| partition.subpartitions.is_empty()) {
        let (name, comment) = (&partition.name, &partition.comment);
        let numbered = |no: usize| SubpartitionDescription {
            name: format!("{name}sp{no}"),
            comment: comment.clone(),
            tablespace: None,
        };
        partition.subpartitions = (0..sub_count).map(numbered).collect();
    }
    (Some(by), partitions)
}

/// Partitions that the server has named.
fn numbered(count: usize, is_by_system_time: bool) -> Vec<PartitionDescription> {
    let named = |no: usize| {
        let is_current = is_by_system_time && no + 1 == count;
        PartitionDescription {
            name: if is_current { "pn".to_owned() } else { format!("p{no}") },
            description: is_current.then(|| "CURRENT".to_owned()),
            ..PartitionDescription::default()
        }
    };
    (0..count).map(named).collect()
}

/// A partition or a subpartition of a list.
struct Item {
    name: String,
    /// Its bound or values as they are written.
    values: Option<String>,
    /// `DEFAULT`, `HISTORY` or `CURRENT`.
    word: Option<&'static str>,
    comment: String,
    parts: Vec<Item>,
}

impl Item {
    fn partition(self, by: &PartitionedBy) -> PartitionDescription {
        let columns = by.expression.as_deref().unwrap_or_default();
        let description = match (self.word, by.method.as_str()) {
            (Some("DEFAULT"), "LIST") => Some("0".to_owned()),
            (Some("DEFAULT"), _) => {
                let count = column_count(columns);
                let every = vec!["MAXVALUE"; count].join(",");
                Some(if count > 1 { format!("({every})") } else { every })
            }
            (Some("CURRENT"), _) => Some("CURRENT".to_owned()),
            _ => self.values,
        };
        PartitionDescription {
            name: self.name,
            subpartitions: self.parts.into_iter().map(Item::subpartition).collect(),
            description,
            comment: self.comment,
            tablespace: None,
        }
    }

    fn subpartition(self) -> SubpartitionDescription {
        SubpartitionDescription { name: self.name, comment: self.comment, tablespace: None }
    }
}

/// How many names in backticks `columns` has.
fn column_count(columns: &str) -> usize {
    columns.replace("``", "").matches('`').count() / 2
}

struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    /// Steps over `words` if they come next.
    fn take(&mut self, words: &str) -> bool {
        let rest = self.rest.trim_start();
        let Some(behind) = rest.strip_prefix(words) else { return false };
        if behind.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            return false;
        }
        self.rest = behind;
        true
    }

    fn number_behind(&mut self, word: &str) -> Option<usize> {
        if !self.take(word) {
            return None;
        }
        let rest = self.rest.trim_start();
        let len = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        self.rest = &rest[len..];
        rest[..len].parse().ok().filter(|count| *count <= MAX_PARTITIONS)
    }

    /// A method with what stands in its parentheses.
    fn method(&mut self) -> (String, Option<String>) {
        let len = self.rest.find('(').unwrap_or(self.rest.len());
        let (words, rest) = self.rest.split_at(len);
        self.rest = rest;
        let words = words.split_once(" ALGORITHM").map_or(words, |(words, _)| words);
        let method = words.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        (method, self.parentheses().map(str::to_owned))
    }

    /// What stands in the parentheses that come next.
    fn parentheses(&mut self) -> Option<&'a str> {
        let rest = self.rest.trim_start().strip_prefix('(')?;
        let mut depth = 0_usize;
        let mut quote = None;
        let mut is_escaped = false;
        for (at, c) in rest.char_indices() {
            match quote {
                Some(_) if is_escaped => is_escaped = false,
                Some('\'') if c == '\\' => is_escaped = true,
                Some(open) if c == open => quote = None,
                Some(_) => {}
                None if matches!(c, '\'' | '`') => quote = Some(c),
                None if c == '(' => depth += 1,
                None if c == ')' && depth == 0 => {
                    self.rest = &rest[at + 1..];
                    return Some(&rest[..at]);
                }
                None if c == ')' => depth -= 1,
                None => {}
            }
        }
        None
    }

    /// A name, in backticks or without, or a text in quotes.
    fn name(&mut self) -> Option<String> {
        let rest = self.rest.trim_start();
        let quote = rest.chars().next()?;
        if !matches!(quote, '`' | '\'') {
            let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len());
            self.rest = &rest[len..];
            return (len > 0).then(|| rest[..len].to_owned());
        }
        let mut name = String::new();
        let mut characters = rest.char_indices().skip(1).peekable();
        while let Some((at, c)) = characters.next() {
            if c == '\\' && quote == '\'' {
                name.extend(characters.next().map(|(_, escaped)| match escaped {
                    'n' => '\n',
                    'r' => '\r',
                    '0' => '\0',
                    other => other,
                }));
            } else if c != quote {
                name.push(c);
            } else if characters.peek().is_some_and(|(_, next)| *next == quote) {
                name.push(quote);
                characters.next();
            } else {
                self.rest = &rest[at + 1..];
                return Some(name);
            }
        }
        None
    }

    /// A list of partitions or subpartitions in parentheses, each behind `word`.
    fn list(&mut self, word: &str) -> Option<Vec<Item>> {
        let inside = self.parentheses()?;
        let mut scanner = Scanner { rest: inside };
        let mut items = Vec::new();
        while scanner.take(word) {
            items.push(scanner.item()?);
            if !scanner.comma() {
                break;
            }
        }
        (!items.is_empty()).then_some(items)
    }

    fn comma(&mut self) -> bool {
        let rest = self.rest.trim_start();
        let behind = rest.strip_prefix(',');
        self.rest = behind.unwrap_or(rest);
        behind.is_some()
    }

    /// What stands behind PARTITION or SUBPARTITION.
    fn item(&mut self) -> Option<Item> {
        let name = self.name()?;
        let mut item = Item { name, values: None, word: None, comment: String::new(), parts: Vec::new() };
        if self.take("VALUES LESS THAN MAXVALUE") {
            item.values = Some("MAXVALUE".to_owned());
        } else if self.take("VALUES LESS THAN") || self.take("VALUES IN") {
            item.values = Some(self.parentheses()?.to_owned());
        } else {
            item.word = ["DEFAULT", "HISTORY", "CURRENT"].into_iter().find(|word| self.take(word));
        }
        loop {
            let rest = self.rest.trim_start();
            if rest.starts_with('(') {
                item.parts = self.list("SUBPARTITION")?;
                return Some(item);
            }
            if rest.is_empty() || rest.starts_with(',') {
                return Some(item);
            }
            self.option(&mut item)?;
        }
    }

    /// An option: words, perhaps an equals sign, and a value.
    fn option(&mut self, item: &mut Item) -> Option<()> {
        let is_comment = self.take("COMMENT");
        if let Some(rest) = self.rest.trim_start().strip_prefix('=') {
            self.rest = rest;
        }
        let value = self.name()?;
        if is_comment {
            item.comment = value;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(clause: &str) -> (PartitionedBy, Vec<PartitionDescription>) {
        let (by, partitions) = read(clause, Some("row_end".to_owned()));
        (by.unwrap(), partitions)
    }

    fn named(name: &str, description: &str) -> PartitionDescription {
        PartitionDescription {
            name: name.to_owned(),
            description: (!description.is_empty()).then(|| description.to_owned()),
            ..PartitionDescription::default()
        }
    }

    #[test]
    fn partitions_with_subpartitions_are_read() {
        let (by, partitions) = described(
            " PARTITION BY RANGE (year(`d`))\nSUBPARTITION BY HASH (to_days(`d`))\n(PARTITION `p,0` VALUES LESS THAN \
             (10)\n (SUBPARTITION `s0` COMMENT = 'x\\'y' ENGINE = InnoDB,\n  SUBPARTITION `s1` ENGINE = InnoDB),\n \
             PARTITION `p1` VALUES LESS THAN MAXVALUE\n (SUBPARTITION `s2` ENGINE = InnoDB,\n  SUBPARTITION `s3` \
             ENGINE = InnoDB))",
        );
        assert_eq!((by.method.as_str(), by.expression.as_deref()), ("RANGE", Some("year(`d`)")));
        assert_eq!(
            (by.sub_method.as_deref(), by.sub_expression.as_deref()),
            (Some("HASH"), Some("to_days(`d`)"))
        );
        let sub = |(name, comment): (&str, &str)| SubpartitionDescription {
            name: name.to_owned(),
            comment: comment.to_owned(),
            tablespace: None,
        };
        let subs = |names: [(&str, &str); 2]| names.map(sub).to_vec();
        let expected = [
            PartitionDescription { subpartitions: subs([("s0", "x'y"), ("s1", "")]), ..named("p,0", "10") },
            PartitionDescription { subpartitions: subs([("s2", ""), ("s3", "")]), ..named("p1", "MAXVALUE") },
        ];
        assert_eq!(partitions, expected);
    }

    #[test]
    fn partitions_without_a_list_are_numbered() {
        let (by, partitions) = described(" PARTITION BY KEY ALGORITHM = 1 (`a`)\nPARTITIONS 2");
        assert_eq!((by.method.as_str(), by.expression.as_deref()), ("KEY", Some("`a`")));
        assert_eq!(partitions, [named("p0", ""), named("p1", "")]);
        let (by, partitions) = described(" PARTITION BY SYSTEM_TIME LIMIT 100\nPARTITIONS 2");
        assert_eq!(by.method, "SYSTEM_TIME");
        assert_eq!(partitions, [named("p0", ""), named("pn", "CURRENT")]);
        let (_, partitions) = described(
            " PARTITION BY LIST  COLUMNS(`a`,`b`)\n(PARTITION `p` VALUES IN ((1,'a)'),(3,'b,c')) ENGINE = InnoDB,\n \
             PARTITION `q` DEFAULT MAX_ROWS = 5 DATA DIRECTORY = '/a b' ENGINE = InnoDB)",
        );
        assert_eq!(partitions, [named("p", "(1,'a)'),(3,'b,c')"), named("q", "(MAXVALUE,MAXVALUE)")]);
        assert_eq!(read("", None), (None, Vec::new()));
    }
}
