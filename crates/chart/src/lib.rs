//! Charts as SVG, and the HTML pages of benchmarks that hold them.
//!
//! Above: the benchmarks. Below: `tanada-report`, and the library plotters, which draws. All pages look the same:
//!
//! - lines are named beside their ends, bars beside the chart; nothing is written over what is drawn;
//! - eight colors that color-blind readers tell apart (Okabe and Ito, 2008), and dashes from the ninth on;
//! - points that a paper gives are hollow circles without a line;
//! - the values stand in a table below each chart;
//! - a page follows the reader's choice of light or dark, and fits a phone.
//!
//! ```
//! use tanada_chart::{Chart, Page, Series};
//! let chart = Chart::lines("Join, out of order", "disks", "seconds")
//!     .with(Series::new("in order", [(1.0, 8.0), (8.0, 7.9)]))
//!     .with(Series::new("out of order", [(1.0, 5.1), (8.0, 0.9)]));
//! let page = Page::new("Out of order").with_chart(&chart)?.html();
//! assert!(page.contains("<svg") && page.contains("<td>0.9</td>"));
//! # Ok::<(), tanada_chart::Error>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod draw;
mod page;
mod palette;

use std::fmt;

pub use page::Page;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A chart could not be drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    message: String,
}

impl Error {
    fn drawing(title: &str, why: impl fmt::Display) -> Error {
        Error { message: format!("cannot draw {title}: {why}") }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// What belongs together: a line, or the bars of one color.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    name: String,
    /// In charts of bars, x is the number of the group.
    points: Vec<(f64, f64)>,
    is_thick: bool,
    is_of_paper: bool,
}

impl Series {
    /// Measured values, at ascending x.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        let points = points.into_iter().collect();
        Series { name: name.into(), points, is_thick: false, is_of_paper: false }
    }

    /// Values that a paper gives: drawn as hollow circles.
    #[must_use]
    pub fn of_paper(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        Series { is_of_paper: true, ..Series::new(name, points) }
    }

    /// A thicker line: what the chart is about.
    #[must_use]
    pub fn thick(self) -> Series {
        Series { is_thick: true, ..self }
    }

    /// The points that can be drawn.
    fn finite(&self) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
        self.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite())
    }

    fn at(&self, x: f64) -> Option<f64> {
        self.points.iter().find(|(own, _)| *own == x).map(|(_, y)| *y).filter(|y| y.is_finite())
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// The name of the x axis.
    Lines(String),
    /// The names of the groups.
    Bars(Vec<String>),
}

/// A chart with its series.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    title: String,
    kind: Kind,
    /// The name of the y axis, with its unit.
    values: String,
    series: Vec<Series>,
}

impl Chart {
    /// A line for each series, over `x`.
    pub fn lines(title: impl Into<String>, x: impl Into<String>, values: impl Into<String>) -> Chart {
        let kind = Kind::Lines(x.into());
        Chart { title: title.into(), kind, values: values.into(), series: Vec::new() }
    }

    /// A bar for each series in each group.
    pub fn bars(title: impl Into<String>, groups: &[String], values: impl Into<String>) -> Chart {
        let kind = Kind::Bars(groups.to_vec());
        Chart { title: title.into(), kind, values: values.into(), series: Vec::new() }
    }

    /// One more series.
    #[must_use]
    pub fn with(mut self, series: Series) -> Chart {
        self.series.push(series);
        self
    }

    /// The chart as SVG.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn svg(&self) -> Result<String> {
        let mut svg = String::new();
        draw::draw(&mut svg, self).map_err(|error| Error::drawing(&self.title, error))?;
        Ok(svg)
    }
}
