//! Queries at random over the tables of a database.
//!
//! 1. FROM takes one to three tables or a derived table, joined in different ways.
//! 2. Expressions are expanded from templates until `MAX_DEPTH`; then they are columns in scope or literals. A column
//!    of another class is taken now and then, so that the servers' conversions come into play.
//! 3. The order of rows and the choice of rows by LIMIT is only asked for where it is total: by the keys of all tables.

use super::node::{Node, Part, Query, Source};
use super::schema::{Class, Database, Table, literal};
use super::templates::{AGGREGATES, CONDITIONS, DOCUMENTS, NUMBERS, TEMPORALS, TEXTS, TIMES, WINDOWS};
use crate::random::Random;

const MAX_DEPTH: u32 = 3;
/// Of 100 expressions so many have another class than is wanted.
const ODD_CLASS_PERCENT: u64 = 4;
const CLASSES: [Class; 8] = [
    Class::Number,
    Class::Number,
    Class::Text,
    Class::Text,
    Class::Temporal,
    Class::Time,
    Class::Json,
    Class::Condition,
];

/// A column that can be named.
#[derive(Debug, Clone)]
struct Named {
    class: Class,
    text: String,
}

pub struct Chooser<'a> {
    random: &'a mut Random,
    database: &'a Database,
    scope: Vec<Named>,
    /// The keys that together name a row.
    keys: Vec<String>,
    /// Levels of subqueries.
    level: u32,
    aliases: u32,
}

impl<'a> Chooser<'a> {
    pub fn new(random: &'a mut Random, database: &'a Database) -> Chooser<'a> {
        Chooser { random, database, scope: Vec::new(), keys: Vec::new(), level: 0, aliases: 0 }
    }

    /// A query.
    pub fn query(&mut self) -> Query {
        let mut query = Query { from: self.from(), ..Query::default() };
        if self.random.chance(50) {
            query.filter = Some(self.node(Class::Condition, 1));
        }
        match self.random.below(10) {
            0..=3 => self.grouped(&mut query),
            4 | 5 => self.windowed(&mut query),
            _ => self.plain(&mut query),
        }
        if query.limit.is_none() && query.order.is_empty() && self.random.chance(7) {
            self.set_operation(&mut query);
        }
        query
    }

    /// A condition over what a query has in FROM.
    pub fn condition(random: &mut Random, database: &Database, query: &Query) -> Node {
        let mut chooser = Chooser::new(random, database);
        for Source { of, alias, .. } in &query.from {
            let of = of.to_string();
            let is_of = |table: &&Table| of == format!("{}.{}", database.name, table.name);
            let columns = database.tables.iter().find(is_of).map(|table| table.columns.as_slice());
            for column in columns.unwrap_or_default() {
                let text = format!("{alias}.{}", column.name);
                chooser.scope.push(Named { class: column.class, text });
            }
        }
        chooser.node(Class::Condition, 1)
    }

    fn plain(&mut self, query: &mut Query) {
        query.select = self.select_list();
        query.distinct = self.random.chance(12);
        if !query.distinct && self.random.chance(35) {
            self.total_order(query);
        }
    }

    fn windowed(&mut self, query: &mut Query) {
        let template = self.random.pick(WINDOWS);
        query.select = vec![Node::text(self.keys.join(", ")), self.expanded(template, MAX_DEPTH - 1)];
        if self.random.chance(30) {
            self.total_order(query);
        }
    }

    fn total_order(&mut self, query: &mut Query) {
        let mut order = Vec::new();
        if self.random.chance(60) {
            let class = self.random.pick(&CLASSES);
            let direction = self.random.pick(&["", " desc"]);
            let key = self.node(class, MAX_DEPTH - 1);
            order.push(Node(vec![Part::Child(key), Part::Text(direction.to_owned())]));
        }
        order.extend(self.keys.iter().map(Node::text));
        (query.order, query.is_total) = (order, true);
        if self.random.chance(40) {
            query.limit = Some(self.random.pick(&["1", "3", "5 offset 2", "0", "2, 4"]).to_owned());
        }
    }

    fn grouped(&mut self, query: &mut Query) {
        let keys = self.random.below(3);
        for _ in 0..keys {
            let class = self.random.pick(&CLASSES[..6]);
            let depth = if self.random.chance(60) { MAX_DEPTH } else { MAX_DEPTH - 1 };
            query.group.push(self.column_or(class, depth));
        }
        query.select = query.group.clone();
        for _ in 0..self.random.between(1, 2) {
            query.select.push(self.aggregate());
        }
        if keys > 0 && self.random.chance(20) {
            let aggregate = self.aggregate();
            let is = self.random.pick(&[" > 1)", " is not null)", " <> 0)"]);
            query.having = Some(Node(vec![
                Part::Text("(".to_owned()),
                Part::Child(aggregate),
                Part::Text(is.to_owned()),
            ]));
        }
        query.rollup = keys > 0 && query.having.is_none() && self.random.chance(6);
    }

    fn aggregate(&mut self) -> Node {
        let (_, template) = self.random.pick(AGGREGATES);
        self.expanded(template, MAX_DEPTH - 1)
    }

    fn set_operation(&mut self, query: &mut Query) {
        let word =
            self.random.pick(&["union", "union all", "except", "intersect", "except all", "intersect all"]);
        let class = self.random.pick(&CLASSES);
        query.select = vec![self.node(class, MAX_DEPTH - 1)];
        (query.group, query.having, query.rollup) = (Vec::new(), None, false);
        let mut other = self.nested();
        let mut with = Query { from: other.from(), ..Query::default() };
        with.select = vec![other.node(class, MAX_DEPTH - 1)];
        query.set = Some((word, Box::new(with)));
    }

    fn select_list(&mut self) -> Vec<Node> {
        let count = self.random.between(1, 3);
        (0..count)
            .map(|_| {
                let class = self.random.pick(&CLASSES);
                self.node(class, 1)
            })
            .collect()
    }

    /// A chooser whose scope is empty; what it takes is not to be named outside.
    fn nested(&mut self) -> Chooser<'_> {
        Chooser {
            random: self.random,
            database: self.database,
            scope: Vec::new(),
            keys: Vec::new(),
            level: self.level + 1,
            aliases: self.aliases + 10,
        }
    }

    fn from(&mut self) -> Vec<Source> {
        let count = if self.level > 0 { 1 } else { self.random.pick(&[1, 1, 2, 2, 3]) };
        let mut sources: Vec<Source> = Vec::new();
        for no in 0..count {
            let join = match no {
                0 => "",
                _ => self.random.pick(&[" join", " left join", " join", " right join", " cross join"]),
            };
            let (of, columns) = self.source();
            let alias = format!("{}{}", if self.level > 0 { "s" } else { "r" }, self.aliases);
            self.aliases += 1;
            let before = self.scope.len();
            for (name, class) in &columns {
                self.scope.push(Named { class: *class, text: format!("{alias}.{name}") });
            }
            self.keys.push(format!("{alias}.{}", columns[0].0));
            let on = (no > 0 && join != " cross join").then(|| self.join_condition(before));
            sources.push(Source { join, of, alias, on });
        }
        sources
    }

    /// A table, or a query in its place, with the columns that it has.
    fn source(&mut self) -> (Node, Vec<(String, Class)>) {
        let database = self.database;
        let table: &Table = &database.tables[self.random.below(database.tables.len() as u64) as usize];
        let columns: Vec<(String, Class)> =
            table.columns.iter().map(|column| (column.name.clone(), column.class)).collect();
        if self.level > 0 || !self.random.chance(15) {
            return (Node::text(format!("{}.{}", database.name, table.name)), columns);
        }
        let mut inner = self.nested();
        let mut query = Query { from: inner.from(), ..Query::default() };
        let key = inner.keys[0].clone();
        let class = inner.random.pick(&CLASSES[..6]);
        let value = inner.node(class, MAX_DEPTH - 1);
        query.select = vec![
            Node::text(format!("{key} as id")),
            Node(vec![Part::Child(value), Part::Text(" as v".to_owned())]),
        ];
        if inner.random.chance(50) {
            query.filter = Some(inner.node(Class::Condition, MAX_DEPTH - 1));
        }
        let of = Node(vec![Part::Text("(".into()), Part::Query(Box::new(query)), Part::Text(")".into())]);
        (of, vec![("id".to_owned(), Class::Number), ("v".to_owned(), class)])
    }

    /// An equality between what was in scope before and what is new, or any condition.
    fn join_condition(&mut self, before: usize) -> Node {
        let left = self.scope[self.random.below(before as u64) as usize].clone();
        let same = self.scope[before..].iter().filter(|named| named.class == left.class);
        let same: Vec<String> = same.map(|named| named.text.clone()).collect();
        match same.len() {
            0 => self.node(Class::Condition, MAX_DEPTH),
            _ if self.random.chance(12) => self.node(Class::Condition, MAX_DEPTH - 1),
            count => {
                let right = &same[self.random.below(count as u64) as usize];
                let operator = self.random.pick(&["=", "=", "=", "=", "<", "<=>"]);
                Node::text(format!("({} {operator} {right})", left.text))
            }
        }
    }

    /// An expression of a class; `depth` are the levels above it.
    fn node(&mut self, class: Class, depth: u32) -> Node {
        let class = if self.random.chance(ODD_CLASS_PERCENT) { self.random.pick(&CLASSES) } else { class };
        // A condition that is no expression of its own is rarely interesting.
        let leaf = depth >= MAX_DEPTH || (class != Class::Condition && self.random.chance(35));
        if leaf && !(class == Class::Condition && depth <= MAX_DEPTH) {
            return self.leaf(class);
        }
        let templates = match class {
            Class::Number => NUMBERS,
            Class::Text => TEXTS,
            Class::Temporal => TEMPORALS,
            Class::Time => TIMES,
            Class::Json => DOCUMENTS,
            Class::Condition => CONDITIONS,
        };
        let template = self.random.pick(templates);
        if template.contains("{q") && (self.level > 0 || depth > 2) {
            return self.leaf(class);
        }
        self.expanded(template, depth)
    }

    /// A column of the class if there is one in scope, else an expression.
    fn column_or(&mut self, class: Class, depth: u32) -> Node {
        if self.random.chance(70) { self.leaf(class) } else { self.node(class, depth) }
    }

    fn leaf(&mut self, class: Class) -> Node {
        let named: Vec<&Named> = self.scope.iter().filter(|named| named.class == class).collect();
        if !named.is_empty() && self.random.chance(87) {
            return Node::text(named[self.random.below(named.len() as u64) as usize].text.clone());
        }
        Node::text(literal(class, self.random))
    }

    fn expanded(&mut self, template: &str, depth: u32) -> Node {
        let mut parts = Vec::new();
        let mut last = Node::default();
        for (no, piece) in template.split('{').enumerate() {
            if no == 0 {
                parts.push(Part::Text(piece.to_owned()));
                continue;
            }
            let (hole, rest) = piece.split_once('}').unwrap();
            let part = if let Some(kind) = hole.strip_prefix("q.") {
                Part::Query(Box::new(self.subquery(kind)))
            } else {
                if hole != "=" {
                    last = self.hole(hole, depth + 1);
                }
                Part::Child(last.clone())
            };
            parts.extend([part, Part::Text(rest.to_owned())]);
        }
        parts.retain(|part| *part != Part::Text(String::new()));
        Node(parts)
    }

    fn hole(&mut self, hole: &str, depth: u32) -> Node {
        let class = match hole {
            "n" => Class::Number,
            "s" => Class::Text,
            "d" => Class::Temporal,
            "t" => Class::Time,
            "j" => Class::Json,
            "b" => Class::Condition,
            "i" => return Node::text(self.random.between(1, 6).to_string()),
            "k" => return Node::text(self.keys.join(", ")),
            _ => self.random.pick(&CLASSES[..6]),
        };
        self.node(class, depth)
    }

    /// A query in an expression, perhaps correlated.
    fn subquery(&mut self, kind: &str) -> Query {
        let outer: Vec<Named> = self.scope.clone();
        let mut inner = self.nested();
        let mut query = Query { from: inner.from(), ..Query::default() };
        if inner.random.chance(55) {
            let column = inner.scope[inner.random.below(inner.scope.len() as u64) as usize].clone();
            let same: Vec<&Named> = outer.iter().filter(|named| named.class == column.class).collect();
            if !same.is_empty() {
                let of = &same[inner.random.below(same.len() as u64) as usize].text;
                let operator = inner.random.pick(&["=", "=", "=", "<", ">"]);
                query.filter = Some(Node::text(format!("({} {operator} {of})", column.text)));
            }
        } else if inner.random.chance(50) {
            query.filter = Some(inner.node(Class::Condition, MAX_DEPTH));
        }
        let template = match kind {
            "number" => inner.random.pick(&["max({n})", "count(*)", "sum({n})", "min({n})", "avg({n})"]),
            "text" => inner.random.pick(&["max({s})", "min({s})"]),
            "numbers" => "{n}",
            "texts" => "{s}",
            _ => inner.random.pick(&["1", "{x}", "count(*)"]),
        };
        query.select = vec![inner.expanded(template, MAX_DEPTH - 1)];
        query
    }
}
