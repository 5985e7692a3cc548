//! `CREATE TABLE` statements as the servers print them (`SHOW CREATE TABLE`, `mysqldump --no-data`) ->
//! [`TableDefinition`].
//!
//! 1. Tokens; versioned comments count as text ([`tokens`]).
//! 2. The statement for the table wanted is looked up by its name, so that nothing else in the file can fail.
//! 3. The list in parentheses becomes columns ([`columns`], [`types`]) and keys ([`keys`]); the options after it give
//!    the character set that columns inherit, which is why collations settle last.
//!
//! What does not change how rows are read (defaults, checks, foreign keys, partition bounds) is stepped over.

mod columns;
mod cursor;
mod keys;
mod tokens;
mod types;

use super::{Collation, Partition, RowFormat, Server, TableDefinition, layout};
use crate::{Error, ErrorKind, Result};
use columns::RawColumn;
use cursor::Cursor;
use keys::RawKey;
use tokens::{Kind, Token};

/// The definition of `database.table` in `text`, `None` if no statement creates it. Roots are unknown, partitions are
/// left to the files.
///
/// # Errors
/// `InvalidInput`, with the line, if the statement is not understood; `Unsupported` for what is not read.
///
/// ```
/// use tanada_innodb::{Server, schema::table_from_ddl};
/// let text = "CREATE TABLE `t` (`id` int NOT NULL, PRIMARY KEY (`id`)) ENGINE=InnoDB";
/// let table = table_from_ddl(text, "d", "t", Server::MySql)?.expect("it is there");
/// assert_eq!(table.columns[0].name, "id");
/// # Ok::<(), tanada_innodb::Error>(())
/// ```
pub fn table_from_ddl(
    text: &str,
    database: &str,
    table: &str,
    server: Server,
) -> Result<Option<TableDefinition>> {
    let tokens = tokens::tokens(text)?;
    let statements = statements(text, &tokens);
    let of_database = |statement: &&Statement<'_>| {
        statement.database.as_ref().is_none_or(|own| own.eq_ignore_ascii_case(database))
    };
    let exact = statements.iter().filter(of_database).find(|statement| statement.table == table);
    let found = exact.or_else(|| {
        statements.iter().filter(of_database).find(|statement| statement.table.eq_ignore_ascii_case(table))
    });
    let Some(statement) = found else { return Ok(None) };
    let definition = definition(statement.body.clone(), server).map(|mut definition| {
        database.clone_into(&mut definition.database);
        table.clone_into(&mut definition.name);
        definition
    });
    definition.map(Some).map_err(|error| error.within(format!("CREATE TABLE {table}")))
}

/// The tables that the statements in `text` create, with their databases where these are named.
///
/// # Errors
/// `InvalidInput` if the text cannot be taken apart.
pub(crate) fn tables_named(text: &str) -> Result<Vec<(Option<String>, String)>> {
    let tokens = tokens::tokens(text)?;
    let named = |statement: Statement<'_>| (statement.database, statement.table);
    Ok(statements(text, &tokens).into_iter().map(named).collect())
}

/// Whether the text says of any temporal type in which form it is stored; the others are in the form of today then.
///
/// # Errors
/// `InvalidInput` if the text cannot be taken apart.
pub(crate) fn names_temporal_forms(text: &str) -> Result<bool> {
    let is_mark = |token: &Token| matches!(&token.kind, Kind::Word(word) if [tokens::OLD_TEMPORAL, tokens::NEW_TEMPORAL].contains(&word.as_str()));
    Ok(tokens::tokens(text)?.iter().any(is_mark))
}

/// A `CREATE TABLE` found in the text.
struct Statement<'a> {
    database: Option<String>,
    table: String,
    /// From the parenthesis on.
    body: Cursor<'a>,
}

/// Finds the statements. They end at a semicolon, or where the next one begins, since `SHOW CREATE TABLE` prints none.
fn statements<'a>(text: &'a str, tokens: &'a [Token]) -> Vec<Statement<'a>> {
    let is_word = |at: usize, word: &str| matches!(tokens.get(at), Some(Token { kind: Kind::Word(own), .. }) if own.eq_ignore_ascii_case(word));
    let mut starts: Vec<usize> = (0..tokens.len())
        .filter(|at| {
            is_word(*at, "create") && ["table", "or", "temporary"].iter().any(|word| is_word(at + 1, word))
                || is_word(*at, "use")
        })
        .collect();
    starts.push(tokens.len());
    let mut database = None;
    let mut statements = Vec::new();
    for bounds in starts.windows(2) {
        let own = &tokens[bounds[0]..bounds[1]];
        let end = own.iter().position(|token| token.kind == Kind::Symbol(';')).unwrap_or(own.len());
        let mut cursor = Cursor::new(text, &own[..end]);
        // `USE` is also part of other statements and of expressions; only a whole statement counts.
        if cursor.eat("use") {
            if let (Ok(name), true) = (cursor.name(), cursor.is_at_end()) {
                database = Some(name);
            }
            continue;
        }
        statements.extend(head(cursor, &database));
    }
    statements
}

fn head<'a>(mut cursor: Cursor<'a>, current: &Option<String>) -> Option<Statement<'a>> {
    cursor.eat("create");
    cursor.eat_all(&["or", "replace"]);
    cursor.eat("temporary");
    if !cursor.eat("table") {
        return None;
    }
    cursor.eat_all(&["if", "not", "exists"]);
    let first = cursor.name().ok()?;
    if cursor.eat_symbol('.') {
        let table = cursor.name().ok()?;
        return Some(Statement { database: Some(first), table, body: cursor });
    }
    Some(Statement { database: current.clone(), table: first, body: cursor })
}

/// What MariaDB calls the columns of system versioning that are not declared.
const ROW_START: &str = "row_start";
const ROW_END: &str = "row_end";

/// What follows the name.
fn definition(mut cursor: Cursor<'_>, server: Server) -> Result<TableDefinition> {
    cursor.expect_symbol('(')?;
    let mut raw_columns: Vec<RawColumn> = Vec::new();
    let mut raw_keys: Vec<RawKey> = Vec::new();
    let mut row_end = None;
    loop {
        match keys::key(&mut cursor)? {
            keys::Item::Key(key) => raw_keys.push(key),
            keys::Item::Other => {}
            keys::Item::SystemTime(end) => row_end = Some(end),
            keys::Item::Column => raw_columns.push(columns::column(&mut cursor, &mut raw_keys)?),
        }
        if !cursor.eat_symbol(',') {
            break;
        }
    }
    cursor.expect_symbol(')')?;
    let options = Options::read(&mut cursor, server)?;
    if options.system_versioned {
        if row_end.is_none() {
            raw_columns.extend([ROW_START, ROW_END].map(RawColumn::of_period));
        }
        let row_end = row_end.get_or_insert_with(|| ROW_END.to_owned());
        raw_keys.iter_mut().for_each(|key| key.add_row_end(row_end));
    }
    settle(raw_columns, raw_keys, row_end.filter(|_| options.system_versioned), &options, server)
}

/// Gives columns their collations and keys their columns, and works out the stored order.
fn settle(
    raw_columns: Vec<RawColumn>,
    raw_keys: Vec<RawKey>,
    row_end: Option<String>,
    options: &Options,
    server: Server,
) -> Result<TableDefinition> {
    let mut columns = Vec::with_capacity(raw_columns.len());
    for raw in raw_columns {
        columns.push(raw.settle(&options.collation, server)?);
    }
    for key in raw_keys.iter().filter(|key| key.is_primary()) {
        key.forbid_null(&mut columns);
    }
    let mut indexes = Vec::with_capacity(raw_keys.len());
    for key in &raw_keys {
        indexes.push(key.settle(&columns, server)?);
    }
    layout::clustered_first(&mut indexes, &columns);
    let mut stored_fields = layout::stored_fields(&columns, &indexes[0]);
    if raw_keys.iter().any(RawKey::is_fulltext) {
        layout::add_document_id(&columns, &mut indexes, &mut stored_fields);
    }
    let row_end = row_end.map(|name| {
        let unknown =
            || Error::new(ErrorKind::InvalidInput, format!("there is no column {name} that ends its rows"));
        let position = columns.iter().position(|column| column.name.eq_ignore_ascii_case(&name));
        position.map(crate::ColumnNo).ok_or_else(unknown)
    });
    let row_end = row_end.transpose()?;
    Ok(TableDefinition {
        database: String::new(),
        name: String::new(),
        server,
        row_format: options.row_format,
        columns,
        indexes,
        stored_fields,
        row_versions: false,
        row_end,
        instant_columns: Vec::new(),
        collation: Some(options.collation.clone()),
        partitions: vec![Partition { name: String::new(), path: std::path::PathBuf::new() }],
    })
}

/// The options after the list, as far as rows depend on them.
struct Options {
    collation: Collation,
    row_format: RowFormat,
    system_versioned: bool,
}

impl Options {
    fn read(cursor: &mut Cursor<'_>, server: Server) -> Result<Options> {
        let mut charset = None;
        let mut collation = None;
        let mut row_format = RowFormat::Dynamic;
        let mut system_versioned = false;
        while !cursor.is_at_end() && cursor.word().as_deref() != Some("partition") {
            if cursor.eat("charset") || cursor.eat_all(&["character", "set"]) {
                cursor.eat_symbol('=');
                charset = Some(cursor.name()?);
            } else if cursor.eat("collate") {
                cursor.eat_symbol('=');
                collation = Some(cursor.name()?);
            } else if cursor.eat("row_format") {
                cursor.eat_symbol('=');
                row_format = row_format_called(&cursor.name()?);
            } else if cursor.eat("engine") {
                cursor.eat_symbol('=');
                require_innodb(&cursor.name()?)?;
            } else if cursor.eat_all(&["system", "versioning"]) {
                system_versioned = true;
            } else {
                cursor.skip_piece()?;
            }
        }
        let collation = types::collation(charset.as_deref(), collation.as_deref(), None, server)
            .map_err(|what| cursor.error(what))?;
        Ok(Options { collation, row_format, system_versioned })
    }
}

fn row_format_called(name: &str) -> RowFormat {
    match name.to_ascii_lowercase().as_str() {
        "redundant" => RowFormat::Redundant,
        "compact" => RowFormat::Compact,
        "compressed" => RowFormat::Compressed,
        _ => RowFormat::Dynamic,
    }
}

fn require_innodb(engine: &str) -> Result<()> {
    if engine.eq_ignore_ascii_case("innodb") {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Unsupported, format!("engine {engine} is not read, only InnoDB")))
}
