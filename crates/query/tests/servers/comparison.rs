//! One table of a server against Tanada's reading of its file.

use tanada_query::Session;

use crate::answers::{Answer, Row, difference};
use crate::random::Random;
use crate::rows::run;

/// Look-ups of a table.
const LOOK_UPS: usize = 3;

/// The first difference between a table as the server printed it and as Tanada reads it: whole, in part, summed, and
/// looked up.
pub async fn compare(
    session: &Session,
    table: &str,
    expected: &Answer,
    random: &mut Random,
) -> Option<String> {
    let sql = format!("select * from `{table}`");
    let whole = match run(session, &sql).await {
        Ok(whole) => whole,
        Err(error) => return Some(format!("{sql}: {error}")),
    };
    if !expected.header.is_empty() && whole.header != expected.header {
        return Some(format!("Tanada has columns {:?}, the server {:?}", whole.header, expected.header));
    }
    if let Some(difference) = difference(&whole.rows, &expected.rows) {
        return Some(format!("{sql}: {difference}"));
    }
    let described = run(session, &format!("describe `{table}`")).await.unwrap();
    let text = |field: &Option<Vec<u8>>| String::from_utf8_lossy(field.as_ref().unwrap()).into_owned();
    let types: Vec<(String, String)> =
        described.rows.iter().map(|row| (text(&row[0]), text(&row[1]))).collect();
    let check = Check { session, table, whole: &whole, types: &types };
    if let Some(difference) = check.projection(random).await {
        return Some(difference);
    }
    if let Some(difference) = check.sums().await {
        return Some(difference);
    }
    check.look_ups(random).await
}

/// Further questions about a table whose rows are right.
struct Check<'a> {
    session: &'a Session,
    table: &'a str,
    whole: &'a Answer,
    types: &'a [(String, String)],
}

impl Check<'_> {
    async fn ask(&self, sql: &str, expected: &[Row]) -> Option<String> {
        match run(self.session, sql).await {
            Ok(answer) => difference(&answer.rows, expected).map(|difference| format!("{sql}: {difference}")),
            Err(error) => Some(format!("{sql}: {error}")),
        }
    }

    /// Some of the columns, in another order.
    async fn projection(&self, random: &mut Random) -> Option<String> {
        let mut places: Vec<usize> = (0..self.whole.header.len()).filter(|_| random.chance(50)).collect();
        places.reverse();
        if places.is_empty() {
            places.push(random.below(self.whole.header.len() as u64) as usize);
        }
        let names: Vec<String> = places.iter().map(|at| format!("`{}`", self.whole.header[*at])).collect();
        let of = |row: &Row| places.iter().map(|at| row[*at].clone()).collect();
        let expected: Vec<Row> = self.whole.rows.iter().map(of).collect();
        self.ask(&format!("select {} from `{}`", names.join(", "), self.table), &expected).await
    }

    /// The sums of all columns of integers.
    async fn sums(&self) -> Option<String> {
        let (mut parts, mut expected) = (Vec::new(), Vec::new());
        for (at, name) in self.whole.header.iter().enumerate() {
            if !self.types.iter().any(|(of, kind)| of == name && kind.contains("int")) {
                continue;
            }
            let values = self.whole.rows.iter().filter_map(|row| row[at].as_deref());
            let values = values.map(|text| String::from_utf8_lossy(text).parse::<i128>().unwrap());
            let sum = values.reduce(|sum, value| sum + value);
            parts.push(format!("sum(`{name}`)"));
            expected.push(sum.map(|sum| sum.to_string().into_bytes()));
        }
        if parts.is_empty() {
            return None;
        }
        self.ask(&format!("select {} from `{}`", parts.join(", "), self.table), &[expected]).await
    }

    /// Rows by the value of one of their columns, by an index wherever there is one.
    async fn look_ups(&self, random: &mut Random) -> Option<String> {
        let plain = |kind: &str| ["int", "date", "timestamp"].iter().any(|name| kind.contains(name));
        let columns: Vec<(usize, &str)> = self
            .types
            .iter()
            .filter(|(_, kind)| plain(kind))
            .filter_map(|(name, kind)| {
                Some((self.whole.header.iter().position(|of| of == name)?, kind.as_str()))
            })
            .collect();
        if columns.is_empty() || self.whole.rows.is_empty() {
            return None;
        }
        for _ in 0..LOOK_UPS {
            let (at, kind) = random.pick(&columns);
            let row = &self.whole.rows[random.below(self.whole.rows.len() as u64) as usize];
            let Some(value) = &row[at] else { continue };
            let value = String::from_utf8_lossy(value);
            // MySQL takes the literal for an error.
            if value.starts_with("0000-00-00") {
                continue;
            }
            let literal = if kind.contains("int") { value.into_owned() } else { format!("'{value}'") };
            let expected: Vec<Row> =
                self.whole.rows.iter().filter(|other| other[at] == row[at]).cloned().collect();
            let sql = format!("select * from `{}` where `{}` = {literal}", self.table, self.whole.header[at]);
            if let Some(difference) = self.ask(&sql, &expected).await {
                return Some(difference);
            }
        }
        None
    }
}
