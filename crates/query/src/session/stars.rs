//! Virtual columns that a query shows only because of a `*`.
//!
//! A virtual column that cannot be computed fails the query that names it. Where only a `*` asks for it, it
//! is shown as NULL with a warning, so that the other columns can be read. A column counts as shown by a
//! star if
//!
//! 1. no expression of the statement names it (a name is looked for in the whole statement, whatever table it is meant
//!    for), and
//! 2. in the plan it goes unaltered from its table to the output: nothing filters, joins, sorts, groups or compares
//!    rows by it.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr as Sql, visit_expressions};

/// Virtual columns by table; both names are in lower case.
pub(super) type VirtualColumns = HashMap<String, Vec<String>>;

/// A table and a virtual column of it, both in lower case.
pub(crate) type Shown = BTreeSet<(String, String)>;

/// The columns that expressions of a statement name, in lower case.
pub(super) fn named(statement: &Statement) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut inner = statement;
    while let Statement::Explain(explain) = inner {
        inner = explain.statement.as_ref();
    }
    if let Statement::Statement(sql) = inner {
        let _: ControlFlow<()> = visit_expressions(sql.as_ref(), |expression| {
            match expression {
                Sql::Identifier(name) => names.extend([name.value.to_lowercase()]),
                Sql::CompoundIdentifier(parts) => {
                    names.extend(parts.last().map(|name| name.value.to_lowercase()))
                }
                _ => {}
            }
            ControlFlow::Continue(())
        });
    }
    names
}

/// The virtual columns that `plan` shows by stars alone.
///
/// # Errors
/// If the plan cannot be walked.
pub(super) fn shown(plan: &LogicalPlan, columns: &VirtualColumns, named: &BTreeSet<String>) -> Result<Shown> {
    let plan = match plan {
        LogicalPlan::Explain(explain) => explain.plan.as_ref(),
        LogicalPlan::Analyze(analyze) => analyze.input.as_ref(),
        plan => plan,
    };
    let mut walk = Walk { columns, used: Shown::new() };
    let output: Shown = walk.flow(plan)?.into_iter().flatten().collect();
    Ok(output.into_iter().filter(|shown| !walk.used.contains(shown) && !named.contains(&shown.1)).collect())
}

/// The virtual column that each output of a plan is, unaltered.
type Flow = Vec<Option<(String, String)>>;

struct Walk<'a> {
    columns: &'a VirtualColumns,
    /// What is used for more than to be shown.
    used: Shown,
}

impl Walk<'_> {
    fn flow(&mut self, plan: &LogicalPlan) -> Result<Flow> {
        if let LogicalPlan::TableScan(scan) = plan {
            // Behind a NUL are partitions.
            let table = scan.table_name.table().to_lowercase();
            let table = table.split('\0').next().unwrap_or_default().to_string();
            let columns = self.columns.get(&table);
            let fields = scan.projected_schema.fields().iter().map(|field| field.name().to_lowercase());
            let is_virtual = |name: &String| columns.is_some_and(|columns| columns.contains(name));
            return Ok(fields.map(|name| is_virtual(&name).then(|| (table.clone(), name))).collect());
        }
        let inputs: Vec<(&LogicalPlan, Flow)> =
            plan.inputs().into_iter().map(|input| Ok((input, self.flow(input)?))).collect::<Result<_>>()?;
        if let (LogicalPlan::Projection(projection), [(input, flow)]) = (plan, inputs.as_slice()) {
            let mut outputs = Flow::new();
            for expression in &projection.expr {
                outputs.push(match expression.clone().unalias_nested().data {
                    Expr::Column(column) => {
                        flow.get(input.schema().index_of_column(&column)?).cloned().flatten()
                    }
                    other => {
                        self.uses(&other, &inputs)?;
                        None
                    }
                });
            }
            return Ok(outputs);
        }
        for expression in plan.expressions() {
            self.uses(&expression, &inputs)?;
        }
        match (plan, inputs.as_slice()) {
            (
                LogicalPlan::Filter(_)
                | LogicalPlan::Sort(_)
                | LogicalPlan::Limit(_)
                | LogicalPlan::SubqueryAlias(_)
                | LogicalPlan::Repartition(_)
                | LogicalPlan::Subquery(_),
                [(_, flow)],
            ) => Ok(flow.clone()),
            (LogicalPlan::Join(join), [(_, left), (_, right)])
                if matches!(
                    join.join_type,
                    JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full
                ) =>
            {
                Ok(left.iter().chain(right).cloned().collect())
            }
            _ => {
                for (_, flow) in &inputs {
                    self.used.extend(flow.iter().flatten().cloned());
                }
                Ok(vec![None; plan.schema().fields().len()])
            }
        }
    }

    /// Marks what an expression is made of, and what its subqueries give.
    fn uses(&mut self, expression: &Expr, inputs: &[(&LogicalPlan, Flow)]) -> Result<()> {
        let at = |schema: &DFSchema, column| schema.index_of_column(column).ok();
        expression.apply(|node| {
            match node {
                Expr::Column(column) => {
                    for (input, flow) in inputs {
                        let origin = at(input.schema().as_ref(), column)
                            .and_then(|at| flow.get(at).cloned().flatten());
                        self.used.extend(origin);
                    }
                }
                Expr::Exists(exists) => {
                    self.flow(&exists.subquery.subquery)?;
                }
                Expr::ScalarSubquery(subquery) => self.gives(&subquery.subquery)?,
                Expr::InSubquery(subquery) => self.gives(&subquery.subquery.subquery)?,
                Expr::SetComparison(comparison) => self.gives(&comparison.subquery.subquery)?,
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    fn gives(&mut self, subquery: &LogicalPlan) -> Result<()> {
        let flow = self.flow(subquery)?;
        self.used.extend(flow.into_iter().flatten());
        Ok(())
    }
}
