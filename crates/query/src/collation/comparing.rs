//! How the columns of a plan and its expressions compare.
//!
//! A column of a table says so in its field's metadata, which DataFusion drops at some expressions; so it is found
//! again from the tables up: an expression of texts compares as its texts do, put together by coercibility, and a
//! literal as the connection does.

use std::cell::OnceCell;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, DFSchemaRef, JoinType, Result};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::utils::{grouping_set_to_exprlist, merge_schema};
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, LogicalPlan, TableScan};
use tanada_innodb::schema::Server;

use crate::binding::{JSON_COLLATION, KIND, kind_of};
use crate::expression::{Collating, Connection, IMPLICIT, Kind, NUMERIC, Refusal};
use crate::relation::types::MYSQL_TYPE;
use crate::subquery::DomainTable;
use crate::{Error, ErrorKind};

/// How values compare.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Comparing {
    /// As Arrow compares them: numbers, dates, bytes, addresses.
    Plainly,
    /// As texts.
    As(Collating),
    /// As MySQL's documents.
    Document,
    /// ENUM and SET: as texts, and by number in ORDER BY.
    Choice(ChoiceType),
    /// As texts of a collation that is not known.
    Unknown,
}

/// The type of an ENUM or SET.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChoiceType {
    /// As the server spells it: `enum('a','b')`.
    pub definition: String,
    /// How its texts compare; its collation may not be known.
    pub collating: Collating,
    /// Whether an element is empty, as is the text of 0: texts do not tell them apart.
    pub has_empty_element: bool,
}

impl ChoiceType {
    /// How it compares where it is not ordered by number.
    pub(super) fn as_text(&self) -> Option<&Collating> {
        self.collating.collation.as_ref().map(|_| &self.collating)
    }

    /// Refuses a type whose numbers its texts do not tell, where values go by number.
    pub(super) fn check_numbers(&self) -> Result<()> {
        match self.has_empty_element {
            true => Err(refused(Refusal::new(
                "an ENUM or SET with an empty element goes by number here, and its text is that of 0, too",
            ))),
            false => Ok(()),
        }
    }
}

/// What is known where an expression is.
#[derive(Debug)]
pub(super) struct Scope {
    pub schema: DFSchema,
    pub connection: Connection,
    inputs: Vec<(DFSchemaRef, Vec<Comparing>)>,
}

impl Scope {
    /// The scope of the expressions of `plan`.
    pub(super) fn of(plan: &LogicalPlan, connection: Connection) -> Result<Scope> {
        let inputs = plan.inputs();
        let schema = merge_schema(&inputs);
        let columns =
            inputs.iter().map(|input| Ok((Arc::clone(input.schema()), columns_of(input, connection)?)));
        Ok(Scope { schema, connection, inputs: columns.collect::<Result<_>>()? })
    }

    /// How the values of `expression` compare.
    pub(super) fn comparing(&self, expression: &Expr) -> Result<Comparing> {
        Ok(match expression {
            Expr::Alias(alias) => self.comparing(&alias.expr)?,
            Expr::Column(column) => {
                let mut found = self.inputs.iter().filter_map(|(schema, columns)| {
                    schema.maybe_index_of_column(column).and_then(|at| columns.get(at))
                });
                found.next().cloned().unwrap_or(Comparing::Unknown)
            }
            Expr::OuterReferenceColumn(field, _) => of_field(field, self.connection),
            // NULL is of the type that it stands beside.
            Expr::Literal(value, _) if value.is_null() => Comparing::Plainly,
            Expr::Cast(cast) if matches!(cast.expr.as_ref(), Expr::Literal(value, _) if value.is_null()) => {
                Comparing::Plainly
            }
            Expr::Literal(value, metadata) => {
                let kind = metadata.as_ref().and_then(|metadata| metadata.inner().get(KIND));
                let is_document =
                    kind.is_some_and(|kind| serde_json::from_str(kind).ok() == Some(Kind::Json));
                match value.data_type().is_string() {
                    true if is_document && self.connection.server == Server::MySql => Comparing::Document,
                    true => Comparing::As(Collating::connection(&self.connection)),
                    false => Comparing::Plainly,
                }
            }
            Expr::ScalarSubquery(subquery) => {
                let columns = columns_of(&subquery.subquery, self.connection)?;
                columns.into_iter().next().unwrap_or(Comparing::Unknown)
            }
            other => self.of_parts(other)?,
        })
    }

    /// Of an expression that is made of others.
    fn of_parts(&self, expression: &Expr) -> Result<Comparing> {
        if !is_text(&expression.get_type(&self.schema)?) {
            return Ok(Comparing::Plainly);
        }
        match expression {
            Expr::Case(case) => {
                let results = case.when_then_expr.iter().map(|(_, result)| result.as_ref());
                self.put_together(results.chain(case.else_expr.as_deref()))
            }
            Expr::Cast(cast) => self.put_together([cast.expr.as_ref()]),
            Expr::TryCast(cast) => self.put_together([cast.expr.as_ref()]),
            Expr::ScalarFunction(function) => {
                let field = expression.to_field(&self.schema)?.1;
                match of_field(&field, self.connection) {
                    Comparing::Unknown => self.put_together(&function.args),
                    known => Ok(known),
                }
            }
            Expr::BinaryExpr(concatenation) => {
                self.put_together([concatenation.left.as_ref(), concatenation.right.as_ref()])
            }
            Expr::AggregateFunction(aggregate) => self.put_together(&aggregate.params.args),
            Expr::WindowFunction(window) => self.put_together(&window.params.args),
            _ => Ok(Comparing::Unknown),
        }
    }

    /// Of what texts are put together to.
    fn put_together<'a>(&self, parts: impl IntoIterator<Item = &'a Expr>) -> Result<Comparing> {
        let mut whole: Option<Collating> = None;
        let mut has_document = false;
        for part in parts {
            let own = match self.comparing(part)? {
                Comparing::Plainly => continue,
                Comparing::Document => {
                    has_document = true;
                    continue;
                }
                Comparing::As(own) => own,
                Comparing::Choice(own) => match own.as_text() {
                    Some(collating) => collating.clone(),
                    None => return Ok(Comparing::Unknown),
                },
                Comparing::Unknown => return Ok(Comparing::Unknown),
            };
            whole = Some(match whole {
                None => own,
                Some(whole) => whole.mixed(&own, "concat").map_err(refused)?,
            });
        }
        if has_document && whole.is_none() {
            return Ok(Comparing::Document);
        }
        // Of numbers and dates.
        let of_number = || Collating { strength: NUMERIC, ..Collating::connection(&self.connection) };
        Ok(Comparing::As(whole.unwrap_or_else(of_number)))
    }
}

/// How the texts in the expressions of a plan compare, found when it is asked for.
pub(crate) struct Texts {
    plan: LogicalPlan,
    connection: Connection,
    scope: OnceCell<Option<Scope>>,
}

impl Texts {
    /// The texts in the expressions of `plan`.
    pub(crate) fn of(plan: &LogicalPlan, connection: Connection) -> Texts {
        Texts { plan: plan.clone(), connection, scope: OnceCell::new() }
    }

    /// How `expression` compares, if it is a text of a collation that is known.
    pub(crate) fn collating(&self, expression: &Expr) -> Option<Collating> {
        let scope = self.scope.get_or_init(|| Scope::of(&self.plan, self.connection).ok());
        match scope.as_ref()?.comparing(expression) {
            Ok(Comparing::As(own)) => Some(own),
            _ => None,
        }
    }
}

/// The columns that `plan` puts out.
pub(super) fn columns_of(plan: &LogicalPlan, connection: Connection) -> Result<Vec<Comparing>> {
    let own_fields =
        || plan.schema().fields().iter().map(|field| of_field(field, connection)).collect::<Vec<_>>();
    Ok(match plan {
        LogicalPlan::TableScan(scan) if is_of_query(scan) => own_fields(),
        LogicalPlan::TableScan(_) => {
            // Tables without collations are the engine's own, which compare as the servers' do.
            let system = Comparing::As(Collating::named("utf8mb3_general_ci", IMPLICIT));
            let known = |own: Comparing| if own == Comparing::Unknown { system.clone() } else { own };
            own_fields().into_iter().map(known).collect()
        }
        LogicalPlan::Projection(projection) => of_expressions(plan, &projection.expr, connection)?,
        LogicalPlan::Aggregate(aggregate) => {
            let scope = Scope::of(plan, connection)?;
            let mut columns = Vec::new();
            for expression in grouping_set_to_exprlist(&aggregate.group_expr)? {
                columns.push(scope.comparing(expression)?);
            }
            let id = plan.schema().fields().len().checked_sub(columns.len() + aggregate.aggr_expr.len());
            columns.extend(std::iter::repeat_n(Comparing::Plainly, id.unwrap_or(0)));
            for expression in &aggregate.aggr_expr {
                columns.push(scope.comparing(expression)?);
            }
            columns
        }
        LogicalPlan::Window(window) => {
            let mut columns = columns_of(&window.input, connection)?;
            columns.extend(of_expressions(plan, &window.window_expr, connection)?);
            columns
        }
        LogicalPlan::Union(union) => {
            let mut columns: Option<Vec<Comparing>> = None;
            for input in &union.inputs {
                let own = columns_of(input, connection)?;
                columns = Some(match columns {
                    None => own,
                    Some(columns) => {
                        columns.into_iter().zip(own).map(|(a, b)| united(a, b)).collect::<Result<_>>()?
                    }
                });
            }
            columns.unwrap_or_default()
        }
        LogicalPlan::Values(values) => {
            let text = |field: &Field| match is_text(field.data_type()) {
                true => Comparing::As(Collating::connection(&connection)),
                false => Comparing::Plainly,
            };
            values.schema.fields().iter().map(|field| text(field)).collect()
        }
        LogicalPlan::RecursiveQuery(query) => columns_of(&query.static_term, connection)?,
        LogicalPlan::Distinct(Distinct::On(on)) => of_expressions(plan, &on.select_expr, connection)?,
        LogicalPlan::Join(join) => {
            let (left, right) = (columns_of(&join.left, connection)?, columns_of(&join.right, connection)?);
            match join.join_type {
                JoinType::LeftSemi | JoinType::LeftAnti => left,
                JoinType::RightSemi | JoinType::RightAnti => right,
                JoinType::LeftMark => [left, vec![Comparing::Plainly]].concat(),
                JoinType::RightMark => [right, vec![Comparing::Plainly]].concat(),
                _ => [left, right].concat(),
            }
        }
        LogicalPlan::Extension(extension) if extension.node.inputs().len() == 2 => {
            of_subquery(plan, &extension.node.inputs(), connection)?
        }
        other => match other.inputs().as_slice() {
            [input] if input.schema().fields().len() == other.schema().fields().len() => {
                columns_of(input, connection)?
            }
            _ => own_fields(),
        },
    })
}

/// The columns of a subquery for each row: its value, or its columns behind the number of the row's values, are beside
/// those of the rows.
fn of_subquery(
    plan: &LogicalPlan,
    inputs: &[&LogicalPlan],
    connection: Connection,
) -> Result<Vec<Comparing>> {
    let mut columns = columns_of(inputs[0], connection)?;
    let mut values = columns_of(inputs[1], connection)?.into_iter().skip(1);
    let rows = columns.len();
    for field in plan.schema().fields().iter().skip(rows) {
        let value = values.next().unwrap_or(Comparing::Unknown);
        columns.push(if is_text(field.data_type()) { value } else { Comparing::Plainly });
    }
    Ok(columns)
}

/// Whether a table is of rows of the query itself, whose fields say less than the plan that they come from.
fn is_of_query(scan: &TableScan) -> bool {
    source_as_provider(&scan.source).is_ok_and(|provider| {
        provider.downcast_ref::<CteWorkTable>().is_some() || provider.downcast_ref::<DomainTable>().is_some()
    })
}

fn of_expressions(
    plan: &LogicalPlan,
    expressions: &[Expr],
    connection: Connection,
) -> Result<Vec<Comparing>> {
    let scope = Scope::of(plan, connection)?;
    expressions.iter().map(|expression| scope.comparing(expression)).collect()
}

/// Of a column of a UNION.
fn united(left: Comparing, right: Comparing) -> Result<Comparing> {
    use Comparing::{As, Choice, Document, Plainly, Unknown};
    Ok(match (left, right) {
        (As(left), As(right)) => As(left.compared(&right, "UNION").map_err(refused)?),
        (Document, Document) => Document,
        (Plainly | Document, other) | (other, Plainly | Document) => other,
        (Choice(left), Choice(right)) if left == right => Choice(left),
        (Choice(choice), As(own)) | (As(own), Choice(choice)) => match choice.as_text() {
            Some(collating) => As(collating.compared(&own, "UNION").map_err(refused)?),
            None => Unknown,
        },
        (Choice(left), Choice(right)) => match (left.as_text(), right.as_text()) {
            (Some(left), Some(right)) => As(left.compared(right, "UNION").map_err(refused)?),
            _ => Unknown,
        },
        _ => Unknown,
    })
}

/// Of a field by its metadata.
pub(super) fn of_field(field: &Field, connection: Connection) -> Comparing {
    if !is_text(field.data_type()) {
        return Comparing::Plainly;
    }
    let mysql_type = field.metadata().get(MYSQL_TYPE).map_or("", String::as_str);
    if let Some(collation) = field.metadata().get(JSON_COLLATION) {
        return Comparing::As(Collating::column(collation, connection.server));
    }
    if matches!(mysql_type, "uuid" | "inet6" | "inet4") {
        return Comparing::Plainly;
    }
    if mysql_type == "json" || matches!(kind_of(field), Ok(Kind::Json)) {
        return if connection.server == Server::MySql { Comparing::Document } else { Comparing::Plainly };
    }
    match kind_of(field) {
        _ if !field.metadata().contains_key(KIND) => Comparing::Unknown,
        // A text that is made of none compares as the connection does.
        Ok(Kind::Text(own)) if own.collation.is_none() => Comparing::As(Collating::connection(&connection)),
        Ok(Kind::Text(own)) => Comparing::As(own),
        Ok(Kind::Choice(choice)) if mysql_type.ends_with(')') => Comparing::Choice(ChoiceType {
            definition: mysql_type.to_string(),
            has_empty_element: choice.has_empty_element(),
            collating: choice.collating,
        }),
        _ => Comparing::Unknown,
    }
}

/// The collation of a column of texts.
pub(crate) fn collation_of(field: &Field) -> Option<String> {
    match kind_of(field) {
        Ok(Kind::Text(own)) => own.collation,
        _ => None,
    }
}

/// Whether values of this type are texts.
pub(super) fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_text(values),
        other => other.is_string(),
    }
}

/// The error of what the servers refuse, or is not known here.
pub(super) fn refused(refusal: Refusal) -> datafusion::common::DataFusionError {
    Error::new(ErrorKind::Unsupported, refusal.to_string()).into()
}
