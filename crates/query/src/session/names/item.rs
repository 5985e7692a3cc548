//! The select list: stars are replaced by columns, and each item is named as the servers show it.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, SelectItem, SelectItemQualifiedWildcardKind, WildcardAdditionalOptions,
};

use super::query::{Output, Surroundings};
use super::scope::Scope;
use super::{Clause, Names, invalid, quoted, texts, unsupported};
use crate::Result;
use crate::session::header::APART;

/// An item of a select list.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// As it is shown.
    pub name: String,
    pub expression: Expr,
}

impl Names<'_> {
    /// The items of a select list.
    pub(super) fn items(
        &mut self,
        projection: Vec<SelectItem>,
        scope: &Scope,
        inner: &Surroundings<'_>,
        is_top: bool,
    ) -> Result<Vec<Item>> {
        let shown = if is_top { texts::items(self.context.tokens) } else { None };
        let shown = shown.filter(|texts| texts.len() == projection.len());
        let mut items = Vec::with_capacity(projection.len());
        for (no, item) in projection.into_iter().enumerate() {
            let text = shown.as_ref().and_then(|texts| texts.get(no));
            match item {
                SelectItem::UnnamedExpr(mut expression) => {
                    let name = self.item_name(&expression, text, scope);
                    self.expression(&mut expression, inner, Clause::Select)?;
                    items.push(Item { name, expression });
                }
                SelectItem::ExprWithAlias { expr: mut expression, alias } => {
                    self.expression(&mut expression, inner, Clause::Select)?;
                    items.push(Item { name: alias.value, expression });
                }
                SelectItem::Wildcard(options) if is_plain(&options) => {
                    if scope.relations.is_empty() {
                        return Err(invalid("No tables used"));
                    }
                    let columns = scope.row.iter().filter(|column| !column.invisible);
                    items.extend(columns.map(|column| Item {
                        name: column.name.clone(),
                        expression: column.expression.clone(),
                    }));
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                    if is_plain(&options) =>
                {
                    items.extend(self.all_of(&name, scope)?);
                }
                _ => return Err(unsupported("this kind of item in a select list is not run")),
            }
        }
        Ok(items)
    }

    fn all_of(&self, name: &ObjectName, scope: &Scope) -> Result<Vec<Item>> {
        let parts: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
        let Some(relation) = scope.relation(&parts) else {
            return Err(invalid(format!("Unknown table '{}'", name.to_string().replace('`', ""))));
        };
        let columns = relation.columns.iter().filter(|column| !column.invisible);
        let item = |column: &super::scope::ScopeColumn| Item {
            name: column.name.clone(),
            expression: column.expression.clone(),
        };
        Ok(columns.map(item).collect())
    }

    /// The name of an item without an alias.
    fn item_name(&self, expression: &Expr, text: Option<&String>, scope: &Scope) -> String {
        let parts = match expression {
            Expr::Identifier(name) => std::slice::from_ref(name),
            Expr::CompoundIdentifier(parts) => parts.as_slice(),
            _ => &[],
        };
        if let Some(column) = scope.derived_column(parts) {
            return column.name.clone();
        }
        if let Some(name) = super::constants::given_name(expression) {
            return name;
        }
        match expression {
            Expr::Identifier(name) if !name.value.starts_with('@') || name.quote_style.is_some() => {
                name.value.clone()
            }
            Expr::CompoundIdentifier(parts) if !parts[0].value.starts_with('@') => {
                parts.last().map_or_else(String::new, |name| name.value.clone())
            }
            Expr::Value(_) => match texts::literal(expression, self.is_mysql(), text.map(String::as_str)) {
                Some(name) => name,
                None => text.cloned().unwrap_or_else(|| texts::of(expression)),
            },
            _ => text.cloned().unwrap_or_else(|| texts::of(expression)),
        }
    }

    /// Names the items of a query: what is shown, and a name of its own for each. `wanted` are names from outside.
    pub(super) fn outputs(&self, items: &[Item], wanted: Option<&Vec<String>>) -> Result<Vec<Output>> {
        if let Some(wanted) = wanted
            && wanted.len() != items.len()
        {
            return Err(invalid("The used SELECT statements have a different number of columns"));
        }
        let mut outputs: Vec<Output> = Vec::with_capacity(items.len());
        for (no, item) in items.iter().enumerate() {
            let name = wanted.and_then(|names| names.get(no)).unwrap_or(&item.name).clone();
            let mut emitted = name.clone();
            while emitted.is_empty() || outputs.iter().any(|before| before.emitted == emitted) {
                emitted.push(APART);
            }
            outputs.push(Output { name, emitted });
        }
        Ok(outputs)
    }
}

/// An item as the rewritten query has it.
pub(super) fn emitted(expression: Expr, output: &Output) -> SelectItem {
    match &expression {
        Expr::CompoundIdentifier(parts)
            if parts.last().is_some_and(|column| column.value == output.emitted) =>
        {
            SelectItem::UnnamedExpr(expression)
        }
        _ => SelectItem::ExprWithAlias { expr: expression, alias: quoted(&output.emitted) },
    }
}

fn is_plain(options: &WildcardAdditionalOptions) -> bool {
    options.opt_except.is_none()
        && options.opt_exclude.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none()
        && options.opt_ilike.is_none()
}
