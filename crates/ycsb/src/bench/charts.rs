//! Charts as SVG: groups of bars, and lines over time.

use plotters::prelude::*;

use crate::{Error, Result};

const SIZE: (u32, u32) = (920, 420);
const WIDTH: f64 = 0.8;

/// One side: its name and a value for each group or point in time.
pub(super) struct Side {
    pub name: String,
    pub values: Vec<f64>,
}

type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// A bar for each side in each group.
pub(super) fn bars(label: &str, groups: &[String], sides: &[Side]) -> Result<String> {
    let mut svg = String::new();
    draw_bars(&mut svg, label, groups, sides).map_err(|error| failed(label, &*error))?;
    Ok(svg)
}

/// A line for each side, over time in steps of `interval_s`.
pub(super) fn lines(label: &str, interval_s: f64, sides: &[Side]) -> Result<String> {
    let mut svg = String::new();
    draw_lines(&mut svg, label, interval_s, sides).map_err(|error| failed(label, &*error))?;
    Ok(svg)
}

fn failed(label: &str, error: &dyn std::error::Error) -> Error {
    Error::failed(format!("cannot draw {label}: {error}"))
}

fn color(no: usize, sides: &[Side]) -> RGBColor {
    let (red, green, blue) = HSLColor(no as f64 / sides.len().max(1) as f64 * 0.9 + 0.58, 0.6, 0.48).rgb();
    RGBColor(red, green, blue)
}

fn most(sides: &[Side]) -> f64 {
    let values = sides.iter().flat_map(|side| &side.values).copied();
    values.filter(|value| value.is_finite()).fold(0.0, f64::max).max(1e-9)
}

fn draw_bars(svg: &mut String, label: &str, groups: &[String], sides: &[Side]) -> Drawn {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(34)
        .y_label_area_size(84)
        .build_cartesian_2d(-0.5..groups.len() as f64 - 0.5, 0.0..most(sides) * 1.15)?;
    let name = |x: &f64| match x.fract().abs() < 1e-6 {
        true => groups.get(*x as usize).cloned().unwrap_or_default(),
        false => String::new(),
    };
    let mut mesh = chart.configure_mesh();
    mesh.disable_x_mesh().x_labels(2 * groups.len() + 1).x_label_formatter(&name).y_desc(label).draw()?;
    let width = WIDTH / sides.len().max(1) as f64;
    for (no, side) in sides.iter().enumerate() {
        let color = color(no, sides);
        let bar = |(group, value): (usize, &f64)| {
            let left = group as f64 - WIDTH / 2.0 + no as f64 * width;
            Rectangle::new([(left, 0.0), (left + width * 0.94, *value)], color.filled())
        };
        let finite = side.values.iter().enumerate().filter(|(_, value)| value.is_finite());
        let drawn = chart.draw_series(finite.map(bar))?;
        let legend = move |(x, y)| Rectangle::new([(x, y - 5), (x + 14, y + 5)], color.filled());
        drawn.label(side.name.as_str()).legend(legend);
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

fn draw_lines(svg: &mut String, label: &str, interval_s: f64, sides: &[Side]) -> Drawn {
    let steps = sides.iter().map(|side| side.values.len()).max().unwrap_or(0).max(1);
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(84)
        .build_cartesian_2d(0.0..steps as f64 * interval_s, 0.0..most(sides) * 1.15)?;
    chart.configure_mesh().x_desc("seconds").y_desc(label).draw()?;
    for (no, side) in sides.iter().enumerate() {
        let color = color(no, sides);
        let points = side.values.iter().enumerate().map(|(step, value)| (step as f64 * interval_s, *value));
        let drawn = chart.draw_series(LineSeries::new(points, color.stroke_width(2)))?;
        let legend = move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2));
        drawn.label(side.name.as_str()).legend(legend);
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}
