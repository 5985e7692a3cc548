//! Aggregates and window functions in the variant of the server.
//!
//! 1. Arguments of SUM, STD and VARIANCE that are no numbers become the numbers that the servers take them for; those
//!    of the aggregates of bits become 64 bits.
//! 2. MariaDB's STD, VARIANCE, PERCENT_RANK and CUME_DIST show a fixed number of digits.
//! 3. MariaDB's SUM, MIN and MAX of quotients have all digits that these carry on; what is shown is rounded above.
//! 4. GROUP_CONCAT is cut at `group_concat_max_len`; JSON_ARRAYAGG and JSON_OBJECTAGG spell values as the server does.
//! 5. MIN, FIRST_VALUE, LAG and their like keep the fraction of times, BIT, and the digits of DOUBLE(m, d); SUM and AVG
//!    keep the latter.
//! 6. Aggregates that depend on the order of rows and have none read one table in the order of its primary key.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, not_impl_err};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr::{AggregateFunction, Alias, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, SortExpr,
    WindowFunctionDefinition, cast,
};
use tanada_innodb::schema::Server;

use super::bound::BoundCall;
use super::displayed;
use super::field::{kind_of, metadata_of};
use super::statement::StatementRules;
use crate::catalog::InnodbTable;
use crate::expression::{Kind, Zone};
use crate::functions::{self, numbers};
use crate::relation::types::MYSQL_TYPE;
use crate::settings::TanadaOptions;

/// Digits that MariaDB shows more than the argument has.
const MORE_DIGITS: u8 = 4;
/// Digits of MariaDB's PERCENT_RANK and CUME_DIST.
const RANK_DIGITS: u8 = 10;

/// An operator whose aggregates and windows are those of the server.
pub(super) fn of_server(node: LogicalPlan, config: &ConfigOptions) -> Result<Transformed<LogicalPlan>> {
    // In the table of its groups MariaDB rounds each partial sum.
    let carries = match &node {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::Window(_) => false,
        _ => return Ok(Transformed::no(node)),
    };
    let options = config.extensions.get::<TanadaOptions>().cloned().unwrap_or_default();
    let schema = merge_schema(&node.inputs());
    let order = node.inputs().first().map_or_else(Vec::new, |input| reading_order(input));
    let names = NamePreserver::new(&node);
    let types = RefCell::default();
    let is_grouped = matches!(&node, LogicalPlan::Aggregate(of) if !of.group_expr.is_empty());
    let statement = config.extensions.get::<StatementRules>();
    let has_zone = statement.is_some_and(|of| of.rules.zone != Zone::UTC);
    let variant = Variant { options: &options, schema: &schema, order, types, is_grouped, has_zone };
    let rewritten = node.map_expressions(|expression| {
        let name = names.save(&expression);
        let expression = variant.with_digits(expression)?;
        variant.keep_type(&expression);
        let expression = if carries { variant.with_all_digits(expression) } else { expression };
        let rewritten = expression.transform_up(|inner| variant.of(inner))?;
        Ok(rewritten.update_data(|expression| name.restore(expression)))
    })?;
    let types = variant.types.into_inner();
    rewritten.map_data(LogicalPlan::recompute_schema)?.map_data(|plan| with_types(plan, &types))
}

struct Variant<'a> {
    options: &'a TanadaOptions,
    schema: &'a DFSchema,
    order: Vec<SortExpr>,
    /// Types of results by their names, which the engine's say too little of.
    types: RefCell<BTreeMap<String, HashMap<String, String>>>,
    /// Whether there are keys of groups.
    is_grouped: bool,
    /// Whether the session's time zone is another than UTC.
    has_zone: bool,
}

/// The operator with these types of its results, which say how many digits are shown.
fn with_types(plan: LogicalPlan, types: &BTreeMap<String, HashMap<String, String>>) -> Result<LogicalPlan> {
    if types.is_empty() {
        return Ok(plan);
    }
    // The number of a grouping set is the operator's own, and gone once GROUPING() is computed.
    let shown = plan.schema().iter().filter(|(_, field)| field.name() != Aggregate::INTERNAL_GROUPING_ID);
    let columns = shown.map(|(qualifier, field)| {
        let column = Expr::Column(Column::from((qualifier, field)));
        match types.get(field.name()).filter(|_| qualifier.is_none()) {
            Some(metadata) => {
                column.alias_with_metadata(field.name(), Some(FieldMetadata::from(metadata.clone())))
            }
            None => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// Whether the result of an aggregate or window is one of its argument's values.
fn gives_a_value(name: &str) -> bool {
    matches!(name, "min" | "max" | "any_value" | "first_value" | "last_value" | "nth_value" | "lag" | "lead")
}

fn inner(expression: &Expr) -> &Expr {
    match expression {
        Expr::Alias(alias) => inner(&alias.expr),
        other => other,
    }
}

impl Variant<'_> {
    fn of(&self, expression: Expr) -> Result<Transformed<Expr>> {
        match expression {
            Expr::AggregateFunction(mut aggregate) => {
                self.aggregate(&mut aggregate)?;
                Ok(Transformed::yes(Expr::AggregateFunction(aggregate)))
            }
            Expr::WindowFunction(mut window) => {
                self.window(&mut window)?;
                Ok(Transformed::yes(Expr::WindowFunction(window)))
            }
            other => Ok(Transformed::no(other)),
        }
    }

    fn mysql(&self) -> bool {
        self.options.server == Server::MySql
    }

    /// Notes the type of a result that shows as many digits as its argument does.
    fn keep_type(&self, expression: &Expr) {
        let (name, argument, is_window) = match inner(expression) {
            Expr::AggregateFunction(of) => (of.func.name(), of.params.args.first(), false),
            Expr::WindowFunction(of) => (of.fun.name(), of.params.args.first(), true),
            _ => return,
        };
        let Some(Ok(kind)) = argument.map(|of| self.field(of)).and_then(Result::ok).map(|of| kind_of(&of))
        else {
            return;
        };
        let is_one_of_its_values = gives_a_value(name);
        let kept = match kind {
            Kind::Time { .. } | Kind::DateTime { .. } | Kind::Timestamp { .. } if is_one_of_its_values => {
                kind
            }
            Kind::Bit { .. } if is_one_of_its_values && (self.mysql() || is_window) => kind,
            Kind::Double { decimals: Some(_) } if is_one_of_its_values || name == "sum" => kind,
            Kind::Double { decimals: Some(digits) } if name == "avg" && digits + MORE_DIGITS < 31 => {
                Kind::Double { decimals: Some(digits + MORE_DIGITS) }
            }
            _ => return,
        };
        self.types.borrow_mut().insert(expression.schema_name().to_string(), metadata_of(&kept));
    }

    /// An aggregate or window of columns with a fixed number of digits, or with zeros before their numbers.
    fn with_digits(&self, expression: Expr) -> Result<Expr> {
        let name = expression.schema_name().to_string();
        let of = |mut expression: Expr| {
            if let Expr::AggregateFunction(of) = &mut expression {
                self.widen_float(of.func.name(), &mut of.params.args)?;
            }
            if let Expr::WindowFunction(of) = &mut expression {
                let function = of.fun.name().to_owned();
                self.widen_float(&function, &mut of.params.args)?;
                if let Some(first) = of.params.args.first_mut().filter(|_| gives_a_value(&function)) {
                    *first = displayed::year_of_window(first.clone(), self.schema)?;
                }
            }
            let kind = match &mut expression {
                Expr::AggregateFunction(of) => {
                    displayed::aggregated(of.func.name(), &mut of.params.args, self.schema, self.is_grouped)?
                }
                Expr::WindowFunction(of) => {
                    let function = of.fun.name().to_owned();
                    displayed::aggregated(&function, &mut of.params.args, self.schema, false)?
                }
                _ => None,
            };
            if let Some(kind) = kind {
                self.types.borrow_mut().insert(name.clone(), metadata_of(&kind));
            }
            Ok(expression)
        };
        match expression {
            Expr::Alias(alias) => {
                let expr = Box::new(of(*alias.expr)?);
                Ok(Expr::Alias(Alias { expr, ..alias }))
            }
            other => of(other),
        }
    }

    /// To MariaDB the extreme of a FLOAT that is computed is a DOUBLE, and what a window takes of several, too.
    fn widen_float(&self, name: &str, arguments: &mut [Expr]) -> Result<()> {
        let Some(first) = arguments.first_mut().filter(|_| gives_a_value(name) && !self.mysql()) else {
            return Ok(());
        };
        if BoundCall::of(first).is_some() && *self.field(first)?.data_type() == DataType::Float32 {
            *first = cast(first.clone(), DataType::Float64);
        }
        Ok(())
    }

    /// A sum of quotients with all of their digits.
    fn with_all_digits(&self, expression: Expr) -> Expr {
        if self.mysql() {
            return expression;
        }
        let name = expression.schema_name().to_string();
        let Expr::Alias(alias) = expression else { return self.carried(expression, &name) };
        let expr = Box::new(self.carried(*alias.expr, &name));
        Expr::Alias(Alias { expr, ..alias })
    }

    fn carried(&self, expression: Expr, name: &str) -> Expr {
        let Expr::AggregateFunction(mut sum) = expression else { return expression };
        let carries = !sum.params.distinct && matches!(sum.func.name(), "sum" | "min" | "max");
        if let ([of], true) = (sum.params.args.as_mut_slice(), carries)
            && let Some((operand, digits)) = BoundCall::carried(of)
        {
            *of = operand;
            let metadata = metadata_of(&Kind::Decimal { scale: digits });
            self.types.borrow_mut().insert(name.to_owned(), metadata);
        }
        Expr::AggregateFunction(sum)
    }

    fn aggregate(&self, aggregate: &mut AggregateFunction) -> Result<()> {
        let params = &mut aggregate.params;
        if let Some(func) = self.variant(&aggregate.func, &mut params.args)? {
            aggregate.func = func;
        }
        let depends_on_order = matches!(
            aggregate.func.name(),
            functions::GROUP_CONCAT | functions::JSON_ARRAYAGG | functions::JSON_OBJECTAGG
        );
        if depends_on_order && params.order_by.is_empty() {
            params.order_by.clone_from(&self.order);
        }
        Ok(())
    }

    fn window(&self, window: &mut WindowFunction) -> Result<()> {
        let params = &mut window.params;
        match &window.fun {
            WindowFunctionDefinition::AggregateUDF(func)
                if self.mysql()
                    && matches!(func.name(), "sum" | "avg")
                    && self.is_double(&params.args)? =>
            {
                let afresh = functions::frame_sum(Arc::clone(func));
                window.fun = WindowFunctionDefinition::AggregateUDF(afresh);
            }
            WindowFunctionDefinition::AggregateUDF(func) => {
                if let Some(func) = self.variant(func, &mut params.args)? {
                    window.fun = WindowFunctionDefinition::AggregateUDF(func);
                }
            }
            WindowFunctionDefinition::WindowUDF(func) => {
                if !self.mysql() && matches!(func.name(), "percent_rank" | "cume_dist") {
                    let fixed = functions::fixed_window(Arc::clone(func), RANK_DIGITS);
                    window.fun = WindowFunctionDefinition::WindowUDF(fixed);
                }
            }
        }
        Ok(())
    }

    /// The aggregate to take instead, with other arguments.
    fn variant(&self, func: &Arc<AggregateUDF>, arguments: &mut [Expr]) -> Result<Option<Arc<AggregateUDF>>> {
        match (func.name(), arguments) {
            ("sum" | "avg", [of]) => {
                self.number(of)?;
                Ok(None)
            }
            ("stddev" | "stddev_pop" | "var" | "var_pop", [of]) => {
                let digits = numbers::digits_of(self.field(of)?.as_ref());
                self.number(of)?;
                if of.get_type(self.schema)? != DataType::Float64 {
                    *of = cast(of.clone(), DataType::Float64);
                }
                Ok(match digits {
                    Some(digits) if !self.mysql() => {
                        Some(functions::fixed_deviation(Arc::clone(func), digits + MORE_DIGITS))
                    }
                    _ => None,
                })
            }
            ("bit_and" | "bit_or" | "bit_xor", [of]) => {
                let field = self.field(of)?;
                let is_binary = matches!(
                    field.data_type(),
                    DataType::Binary | DataType::LargeBinary | DataType::BinaryView
                );
                if is_binary && self.mysql() {
                    return not_impl_err!(
                        "{} of binary strings is not supported",
                        func.name().to_uppercase()
                    );
                }
                let is_document = field.metadata().get(MYSQL_TYPE).is_some_and(|name| name == "json");
                if is_document && self.mysql() {
                    return not_impl_err!("{} of documents is not supported", func.name().to_uppercase());
                }
                // MariaDB cuts the fraction of a second, MySQL rounds the date or time.
                if let DataType::Timestamp(unit, _) | DataType::Duration(unit) = field.data_type()
                    && *unit != TimeUnit::Second
                {
                    return not_impl_err!(
                        "{} of fractions of a second is not supported",
                        func.name().to_uppercase()
                    );
                }
                self.number(of)?;
                if of.get_type(self.schema)? != DataType::UInt64 {
                    *of = functions::bits_function().call(vec![of.clone()]);
                }
                Ok(None)
            }
            // Of all rows MariaDB gives a number, of a group the bits or a number, by its plan.
            ("min" | "max", [of])
                if !self.mysql()
                    && self.is_grouped
                    && matches!(kind_of(self.field(of)?.as_ref()), Ok(Kind::Bit { .. })) =>
            {
                not_impl_err!("MIN and MAX of BIT in groups are not supported; add 0 to the column")
            }
            (functions::JSON_ARRAYAGG | functions::JSON_OBJECTAGG, of) if self.is_shifted(of)? => {
                not_impl_err!(
                    "{} of TIMESTAMP in another time zone than UTC is not supported",
                    func.name().to_uppercase()
                )
            }
            (functions::GROUP_CONCAT, _) => {
                Ok(Some(functions::group_concat(self.options.group_concat_bytes())))
            }
            (functions::JSON_ARRAYAGG, [value]) => {
                self.json(value)?;
                Ok(Some(functions::json_array(self.mysql())))
            }
            (functions::JSON_OBJECTAGG, [_, value]) => {
                self.json(value)?;
                Ok(Some(functions::json_object(self.mysql())))
            }
            _ => Ok(None),
        }
    }

    fn is_double(&self, of: &[Expr]) -> Result<bool> {
        match of {
            [of] => Ok(self.field(of)?.data_type().is_floating()),
            _ => Ok(false),
        }
    }

    /// Whether values are shown by another clock than they are stored by.
    fn is_shifted(&self, of: &[Expr]) -> Result<bool> {
        for argument in of {
            if matches!(self.field(argument)?.data_type(), DataType::Timestamp(_, Some(_))) && self.has_zone {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn field(&self, of: &Expr) -> Result<FieldRef> {
        Ok(of.to_field(self.schema)?.1)
    }

    fn number(&self, of: &mut Expr) -> Result<()> {
        if numbers::is_no_number(self.field(of)?.data_type()) {
            *of = functions::number_function().call(vec![of.clone()]);
        }
        Ok(())
    }

    fn json(&self, value: &mut Expr) -> Result<()> {
        *value = functions::json_value_function(self.mysql()).call(vec![value.clone()]);
        Ok(())
    }
}

/// The primary key of the one table that an operator reads, through what keeps its rows.
fn reading_order(plan: &LogicalPlan) -> Vec<SortExpr> {
    match plan {
        LogicalPlan::Filter(filter) => reading_order(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => {
            let LogicalPlan::TableScan(_) = alias.input.as_ref() else { return Vec::new() };
            let keys = reading_order(&alias.input).into_iter().map(|key| match key.expr {
                Expr::Column(column) => {
                    let expr = Expr::Column(Column::new(Some(alias.alias.clone()), column.name));
                    SortExpr { expr, ..key }
                }
                expr => SortExpr { expr, ..key },
            });
            keys.collect()
        }
        LogicalPlan::TableScan(scan) => {
            let Ok(provider) = source_as_provider(&scan.source) else { return Vec::new() };
            let Some(table) = provider.downcast_ref::<InnodbTable>() else { return Vec::new() };
            let key = table
                .primary_key()
                .into_iter()
                .map(|name| Expr::Column(Column::new(Some(scan.table_name.clone()), name)).sort(true, true));
            let key: Vec<SortExpr> = key.collect();
            let is_read = |key: &SortExpr| match &key.expr {
                Expr::Column(column) => scan.projected_schema.has_column(column),
                _ => false,
            };
            if key.iter().all(is_read) { key } else { Vec::new() }
        }
        _ => Vec::new(),
    }
}
