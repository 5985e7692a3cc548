//! What work takes the processor, by statements over tables of TPC-H that are cached.
//!
//! Each constant is the difference of two statements that differ in this work, in processor time of the process, the
//! least of some runs, over how often it is done. What a difference hides in noise keeps a tenth of the default.

use std::time::Duration;

use super::cpu_time;
use crate::cost::CpuCosts;
use crate::{Result, Session};

/// Measures the processor on `session`, whose default database holds the tables of TPC-H. `io_us` is the processor
/// time of one random read, as the measurement of a medium found it; of `runs` runs of each statement the least counts.
///
/// # Errors
/// If a statement fails.
pub async fn measure_processor(session: &Session, io_us: Option<f64>, runs: usize) -> Result<CpuCosts> {
    let figures = Figures { session, runs: runs.max(1) };
    let defaults = CpuCosts::default();
    let least =
        |measured: f64, default: f64| if measured > default / 10.0 { measured } else { default / 10.0 };
    session.set("tanada.lookup_join", "never").await?;
    session.set("tanada.index_scan", "never").await?;
    let rows = figures.rows("lineitem").await?;
    let (orders, parts) = (figures.rows("orders").await?, figures.rows("part").await?);

    let narrow = figures.warm_us("select count(l_quantity) from lineitem").await?;
    let wide = "select count(l_quantity), count(l_partkey), count(l_suppkey), count(l_linenumber), count(l_extendedprice), \
                count(l_discount), count(l_tax), count(l_shipdate) from lineitem";
    let column = least((figures.warm_us(wide).await? - narrow) / rows / 7.0, defaults.column_us);
    let row = least(narrow / rows - column, defaults.row_us);
    let pages = figures.pages("select count(l_quantity) from lineitem").await?;
    let cold = figures.cold_us("select count(l_quantity) from lineitem").await?;
    let page = least((cold - narrow) / pages.max(1.0), defaults.page_us);

    let prices = figures.warm_us("select sum(l_extendedprice) from lineitem").await?;
    let computed = "select sum(l_extendedprice + l_quantity + l_suppkey + l_partkey) from lineitem";
    let expression = (figures.warm_us(computed).await? - prices) / rows - 3.0 * column;
    let expression = least(expression / 3.0, defaults.expression_us);

    let ordered = "select max(place) from (select row_number() over (order by l_extendedprice) as place from lineitem) as t";
    let comparison = (figures.warm_us(ordered).await? - narrow) / (rows * rows.max(2.0).log2());

    let join = "select count(*) from orders join lineitem on l_orderkey = o_orderkey";
    let scans = figures.warm_us("select count(o_orderkey) from orders").await?
        + figures.warm_us("select count(l_orderkey) from lineitem").await?;
    // Adding a row takes about twice the time of finding one.
    let probe = (figures.warm_us(join).await? - scans) / (2.0 * orders + rows);

    session.set("tanada.lookup_join", "always").await?;
    let outer = figures.warm_us("select count(l_partkey) from lineitem").await?;
    let by_key = "select count(p_size) from lineitem join part on p_partkey = l_partkey";
    let lookup = (figures.warm_us(by_key).await? - outer) / rows - row - column;
    let outer = figures.warm_us("select count(p_partkey) from part").await?;
    let by_index = "select count(l_quantity) from part join lineitem on l_partkey = p_partkey";
    let lookup = least(lookup, defaults.lookup_us);
    let bookmark = (figures.warm_us(by_index).await? - outer - parts * lookup) / rows - row - column;
    session.set("tanada.lookup_join", "auto").await?;
    session.set("tanada.index_scan", "auto").await?;

    Ok(CpuCosts {
        io_us: least(io_us.unwrap_or(defaults.io_us), defaults.io_us),
        page_us: page,
        row_us: row,
        column_us: column,
        // Not measured: as much less than a column of a page as by default.
        mirrored_value_us: column * defaults.mirrored_value_us / defaults.column_us,
        lookup_us: lookup,
        bookmark_us: least(bookmark, defaults.bookmark_us),
        hash_build_us: least(2.0 * probe, defaults.hash_build_us),
        hash_probe_us: least(probe, defaults.hash_probe_us),
        comparison_us: least(comparison, defaults.comparison_us),
        expression_us: expression,
    })
}

struct Figures<'a> {
    session: &'a Session,
    runs: usize,
}

impl Figures<'_> {
    async fn run(&self, sql: &str) -> Result<Duration> {
        let before = cpu_time();
        self.session.execute(sql).await?.collect().await?;
        Ok(cpu_time().saturating_sub(before))
    }

    /// Processor time with everything cached, in microseconds.
    async fn warm_us(&self, sql: &str) -> Result<f64> {
        self.run(sql).await?;
        self.least_us(sql, false).await
    }

    /// With nothing cached.
    async fn cold_us(&self, sql: &str) -> Result<f64> {
        self.least_us(sql, true).await
    }

    async fn least_us(&self, sql: &str, is_cold: bool) -> Result<f64> {
        let mut least = Duration::MAX;
        for _ in 0..self.runs {
            if is_cold {
                self.session.clear_cache();
            }
            least = least.min(self.run(sql).await?);
        }
        Ok(least.as_secs_f64() * 1e6)
    }

    /// Pages of 16 KiB that a statement reads cold.
    async fn pages(&self, sql: &str) -> Result<f64> {
        self.session.clear_cache();
        let mut result = self.session.execute(sql).await?;
        result.collect().await?;
        Ok(result.report().bytes as f64 / 16_384.0)
    }

    async fn rows(&self, table: &str) -> Result<f64> {
        let mut result = self.session.execute(&format!("select * from {table}")).await?;
        let batches = result.collect().await?;
        Ok(batches.iter().map(|batch| batch.num_rows() as f64).sum::<f64>().max(1.0))
    }
}
