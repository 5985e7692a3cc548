//! Oracles that need no server, on tables that one made once.
//!
//! - Ternary logic partitioning (TLP, Rigger and Su 2020): the rows for which a condition is true, false and NULL
//!   together are all rows.
//! - Non-optimizing reference engine construction (NoREC, Rigger and Su 2020): as many rows pass a filter as the same
//!   condition is true for when it is selected, where no index and no pruning help.

use std::fs::File;
use std::path::Path;

use tanada_innodb::MountOptions;
use tanada_query::Session;

use super::choose::Chooser;
use super::node::{Node, Part, Query};
use super::schema::Database;
use super::templates::AGGREGATES;
use super::{number, queries};
use crate::asking::{FAULT, ask, mount};
use crate::printed::Answer;
use crate::random::Random;

/// Databases among the recorded files, seeds from 1 on.
const DATABASES: u64 = 4;
/// Queries for all of them.
const QUERIES: u64 = 480;

/// Most inconsistent answers; this only ever becomes less. Today: IN with a correlated subquery is FALSE where a NULL
/// among its rows makes it NULL.
const MAX_INCONSISTENT: usize = 1;

async fn recorded_tables(folder: &Path) -> Session {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/answers/generated.tar.zst");
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    tar::Archive::new(zstd::Decoder::new(file).unwrap()).unpack(folder).unwrap();
    let session = mount(&folder.join("g1"), true).await;
    let options = MountOptions { allow_stale: true, ..MountOptions::default() };
    for seed in 2..=DATABASES {
        session.mount_innodb(&folder.join(format!("g{seed}")), &options).await.unwrap();
    }
    session.use_database("g1").unwrap();
    session
}

/// `(a) and (b)`, and such.
fn with(query: &Query, condition: Node) -> Query {
    let brackets = |node: Node| [Part::Text("(".into()), Part::Child(node), Part::Text(")".into())];
    let filter = match &query.filter {
        None => condition,
        Some(filter) => {
            let and = [Part::Text(" and ".to_owned())];
            let parts = brackets(filter.clone()).into_iter().chain(and).chain(brackets(condition));
            Node(parts.collect())
        }
    };
    Query { filter: Some(filter), ..query.clone() }
}

fn around(before: &str, condition: &Node, after: &str) -> Node {
    Node(vec![Part::Text(before.into()), Part::Child(condition.clone()), Part::Text(after.into())])
}

/// The rows of a query, or none if it is refused.
async fn rows(session: &Session, sql: &str) -> Result<Option<Vec<String>>, String> {
    match ask(session, sql).await {
        Answer::Rows { rows, .. } => Ok(Some(rows)),
        Answer::Error(error) if error.starts_with(FAULT) => Err(format!("{sql}: {error}")),
        Answer::Error(_) => Ok(None),
    }
}

/// A complaint if the three parts do not make up the whole.
async fn partition(session: &Session, query: &Query, condition: &Node) -> Result<bool, String> {
    let parts = [
        around("(", condition, ")"),
        around("(not (", condition, "))"),
        around("((", condition, ") is null)"),
    ];
    let Some(mut whole) = rows(session, &query.to_string()).await? else { return Ok(false) };
    let mut together = Vec::new();
    for part in parts {
        let Some(some) = rows(session, &with(query, part).to_string()).await? else { return Ok(false) };
        together.extend(some);
    }
    whole.sort();
    together.sort();
    if whole == together {
        return Ok(true);
    }
    Err(format!("{} rows, and {} by parts of {condition}: {query}", whole.len(), together.len()))
}

/// A complaint if another number of rows passes than the condition is true for.
async fn reference(session: &Session, query: &Query, condition: &Node) -> Result<bool, String> {
    let passing = Query { select: vec![Node::text("count(*)")], ..with(query, condition.clone()) };
    let both = with(query, condition.clone()).filter.unwrap_or_default();
    let select = vec![around("((", &both, ") is true)")];
    let all = Query { select, filter: None, ..query.clone() };
    let (Some(passing), Some(all)) =
        (rows(session, &passing.to_string()).await?, rows(session, &all.to_string()).await?)
    else {
        return Ok(false);
    };
    let expected = all.iter().filter(|value| *value == "1").count().to_string();
    if passing == [expected.clone()] {
        return Ok(true);
    }
    Err(format!("{} rows pass, {expected} by the reference: {both}: {query}", passing.join("")))
}

/// Whether a condition leaves rows out of its result and does nothing else to it.
fn is_plain(query: &Query) -> bool {
    let is_aggregate = |node: &Node| {
        let text = node.to_string();
        let mut names = AGGREGATES.iter().filter_map(|(_, template)| template.split_once('('));
        text.contains(" over (") || names.any(|(name, _)| text.starts_with(&format!("{name}(")))
    };
    query.group.is_empty() && query.set.is_none() && !query.distinct && !query.select.iter().any(is_aggregate)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_consistent_by_partitions_and_by_reference() {
    let folder = tempfile::tempdir().unwrap();
    let session = recorded_tables(folder.path()).await;
    let (mut checked, mut complaints) = (0, Vec::new());
    let offset = number("TANADA_SEED", 1);
    let count = number("TANADA_QUERIES", QUERIES).div_ceil(DATABASES);
    for seed in 1..=DATABASES {
        let database = Database::random(seed);
        let mut random = Random::new(seed * 1000 + offset);
        for query in queries(&database, seed + offset * DATABASES, count) {
            if !is_plain(&query) {
                continue;
            }
            let query = Query { order: Vec::new(), limit: None, ..query };
            let condition = Chooser::condition(&mut random, &database, &query);
            for outcome in
                [partition(&session, &query, &condition).await, reference(&session, &query, &condition).await]
            {
                match outcome {
                    Ok(is_answered) => checked += u32::from(is_answered),
                    Err(complaint) => complaints.push(complaint),
                }
            }
        }
    }
    assert!(checked > 10, "only {checked} were answered");
    assert!(
        complaints.len() <= MAX_INCONSISTENT,
        "{} of {checked}:\n{}",
        complaints.len(),
        complaints.join("\n")
    );
}
