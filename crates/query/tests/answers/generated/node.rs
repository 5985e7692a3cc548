//! Expressions and queries as trees: made at random, spelled, and made smaller.

use std::fmt::{self, Display, Formatter};

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Text(String),
    Child(Node),
    Query(Box<Query>),
}

/// An expression: texts with expressions between them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Node(pub Vec<Part>);

impl Node {
    /// An expression without parts of its own.
    pub fn text(text: impl Into<String>) -> Node {
        Node(vec![Part::Text(text.into())])
    }

    /// Smaller expressions in its place: its children, literals, and itself with a smaller part.
    pub fn smaller(&self) -> Vec<Node> {
        if self.0.len() == 1 && matches!(self.0[0], Part::Text(_)) {
            return Vec::new();
        }
        let mut smaller: Vec<Node> = Vec::new();
        for part in &self.0 {
            if let Part::Child(child) = part {
                smaller.push(child.clone());
            }
        }
        smaller.extend(["1", "NULL"].map(Node::text));
        for (at, part) in self.0.iter().enumerate() {
            let parts: Vec<Part> = match part {
                Part::Text(_) => continue,
                Part::Child(child) => child.smaller().into_iter().map(Part::Child).collect(),
                Part::Query(query) => {
                    query.smaller().into_iter().map(|query| Part::Query(Box::new(query))).collect()
                }
            };
            for part in parts {
                let mut node = self.clone();
                node.0[at] = part;
                smaller.push(node);
            }
        }
        smaller
    }
}

impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for part in &self.0 {
            match part {
                Part::Text(text) => f.write_str(text)?,
                Part::Child(node) => node.fmt(f)?,
                Part::Query(query) => query.fmt(f)?,
            }
        }
        Ok(())
    }
}

/// A table or a subquery in FROM.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// How it is joined with those before it; empty for the first.
    pub join: &'static str,
    pub of: Node,
    pub alias: String,
    pub on: Option<Node>,
}

/// A query.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Query {
    pub distinct: bool,
    pub select: Vec<Node>,
    pub from: Vec<Source>,
    pub filter: Option<Node>,
    pub group: Vec<Node>,
    pub rollup: bool,
    pub having: Option<Node>,
    /// Keys of the order; with them the order is total if `is_total`.
    pub order: Vec<Node>,
    pub is_total: bool,
    pub limit: Option<String>,
    /// `union`, `except all` and their like, and what follows it.
    pub set: Option<(&'static str, Box<Query>)>,
}

impl Query {
    /// Queries that lack something of this one.
    pub fn smaller(&self) -> Vec<Query> {
        let mut smaller = Vec::new();
        let mut push = |change: &dyn Fn(&mut Query)| {
            let mut query = self.clone();
            change(&mut query);
            if query != *self {
                smaller.push(query);
            }
        };
        push(&|query| query.set = None);
        push(&|query| query.limit = None);
        push(&|query| (query.order, query.is_total, query.limit) = (Vec::new(), false, None));
        push(&|query| query.having = None);
        push(&|query| query.rollup = false);
        push(&|query| query.filter = None);
        push(&|query| query.distinct = false);
        if self.from.len() > 1 {
            push(&|query| drop(query.from.pop()));
        }
        if self.set.is_none() && self.select.len() > 1 {
            (0..self.select.len()).for_each(|at| push(&|query| drop(query.select.remove(at))));
        }
        (0..self.group.len()).for_each(|at| push(&|query| drop(query.group.remove(at))));
        if let Some((_, other)) = &self.set {
            smaller.push(other.as_ref().clone());
        }
        smaller.extend(self.smaller_parts());
        smaller
    }

    /// Queries with a smaller expression.
    fn smaller_parts(&self) -> Vec<Query> {
        let mut smaller = Vec::new();
        for (at, node) in self.select.iter().enumerate() {
            for node in node.smaller() {
                let mut query = self.clone();
                query.select[at] = node;
                smaller.push(query);
            }
        }
        let places: [fn(&mut Query) -> Option<&mut Node>; 2] =
            [|query| query.filter.as_mut(), |query| query.having.as_mut()];
        for place in places {
            for node in place(&mut self.clone()).map(|node| node.smaller()).unwrap_or_default() {
                let mut query = self.clone();
                if let Some(old) = place(&mut query) {
                    *old = node;
                }
                smaller.push(query);
            }
        }
        for at in 0..self.from.len() {
            for node in self.from[at].on.as_ref().map(Node::smaller).unwrap_or_default() {
                let mut query = self.clone();
                query.from[at].on = Some(node);
                smaller.push(query);
            }
            for node in
                self.from[at].of.smaller().into_iter().filter(|node| node.to_string().starts_with('('))
            {
                let mut query = self.clone();
                query.from[at].of = node;
                smaller.push(query);
            }
        }
        smaller
    }

    /// Whether the order of its rows is determined.
    pub fn is_ordered(&self) -> bool {
        self.is_total && !self.order.is_empty()
    }
}

fn list(nodes: &[Node]) -> String {
    nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "select {}{}", if self.distinct { "distinct " } else { "" }, list(&self.select))?;
        for source in &self.from {
            let join = if source.join.is_empty() { " from" } else { source.join };
            write!(f, "{join} {} {}", source.of, source.alias)?;
            if let Some(on) = &source.on {
                write!(f, " on {on}")?;
            }
        }
        if let Some(filter) = &self.filter {
            write!(f, " where {filter}")?;
        }
        if !self.group.is_empty() {
            write!(f, " group by {}{}", list(&self.group), if self.rollup { " with rollup" } else { "" })?;
        }
        if let Some(having) = &self.having {
            write!(f, " having {having}")?;
        }
        if let Some((word, other)) = &self.set {
            write!(f, " {word} {other}")?;
        }
        if !self.order.is_empty() {
            write!(f, " order by {}", list(&self.order))?;
        }
        if let Some(limit) = &self.limit {
            write!(f, " limit {limit}")?;
        }
        Ok(())
    }
}

#[test]
fn smaller_queries_lack_a_part() {
    let query = Query {
        select: vec![Node(vec![
            Part::Text("abs(".into()),
            Part::Child(Node::text("a")),
            Part::Text(")".into()),
        ])],
        from: vec![Source { join: "", of: Node::text("t"), alias: "x".into(), on: None }],
        filter: Some(Node::text("b")),
        ..Query::default()
    };
    assert_eq!(query.to_string(), "select abs(a) from t x where b");
    let smaller: Vec<String> = query.smaller().iter().map(ToString::to_string).collect();
    assert!(smaller.contains(&"select abs(a) from t x".to_owned()), "{smaller:?}");
    assert!(smaller.contains(&"select a from t x where b".to_owned()), "{smaller:?}");
}
