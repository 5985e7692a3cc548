//! Drawing a chart: the area, the series, and their names beside it.

use plotters::chart::MeshStyle;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use tanada_report::significant;

use crate::palette::{GRID, GROUND, INK, look};
use crate::{Chart, Kind, Series};

/// Width and height, pixels.
const SIZE: (i32, i32) = (920, 440);
/// Room at the right for the names of series.
const NAMES: i32 = 210;
/// From one name to the next.
const LINE_HEIGHT: i32 = 17;
const FONT: (&str, i32) = ("sans-serif", 13);
/// Of the room of a group that its bars take.
const BARS: f64 = 0.8;

type Drawn<T = ()> = Result<T, Box<dyn std::error::Error>>;
type Mesh<'a, 'b> = MeshStyle<'a, 'b, RangedCoordf64, RangedCoordf64, SVGBackend<'a>>;
type Area<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

pub fn draw(svg: &mut String, chart: &Chart) -> Drawn {
    let lines = chart.series.len() as i32 + 2;
    let height = SIZE.1.max(lines * LINE_HEIGHT + 60);
    let root = SVGBackend::with_string(svg, (SIZE.0 as u32, height as u32)).into_drawing_area();
    root.fill(&GROUND)?;
    let (left, right) = root.split_horizontally(SIZE.0 - NAMES);
    let names = match &chart.kind {
        Kind::Lines(x) => draw_lines(&left, chart, x)?,
        Kind::Bars(groups) => draw_bars(&left, chart, groups)?,
    };
    for (no, y) in apart(names, height) {
        draw_name(&right, &chart.series, no, y)?;
    }
    root.present()?;
    Ok(())
}

/// A name with where it belongs, in pixels from the top.
type Name = (usize, i32);

fn most(chart: &Chart) -> f64 {
    let values = chart.series.iter().flat_map(|series| series.finite().map(|(_, y)| y));
    values.fold(0.0, f64::max).max(1e-9)
}

fn axes<'a>(
    area: &DrawingArea<SVGBackend<'a>, plotters::coord::Shift>,
    x: std::ops::Range<f64>,
    most: f64,
) -> Drawn<Area<'a>> {
    Ok(ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(84)
        .build_cartesian_2d(x, 0.0..most * 1.06)?)
}

fn text<'a>() -> TextStyle<'a> {
    TextStyle::from(FONT).color(&INK)
}

/// The y axis, the grid, and the ink of both axes.
fn draw_mesh(mesh: &mut Mesh<'_, '_>, chart: &Chart) -> Drawn {
    mesh.y_label_formatter(&|y| label(*y))
        .y_desc(chart.values.as_str())
        .label_style(text())
        .axis_desc_style(text())
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .draw()?;
    Ok(())
}

fn draw_lines(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    chart: &Chart,
    x: &str,
) -> Drawn<Vec<Name>> {
    let xs = || chart.series.iter().flat_map(|series| series.finite().map(|(x, _)| x));
    let (from, to) = (xs().fold(f64::MAX, f64::min).min(0.0), xs().fold(0.0, f64::max));
    let mut context = axes(area, from..if to > from { to } else { from + 1.0 }, most(chart))?;
    draw_mesh(context.configure_mesh().x_desc(x).x_label_formatter(&|x| label(*x)), chart)?;
    let mut names = Vec::new();
    for (no, series) in chart.series.iter().enumerate() {
        let look = look(no);
        let style = ShapeStyle::from(&look.color).stroke_width(if series.is_thick { 4 } else { 2 });
        if series.is_of_paper {
            context.draw_series(series.finite().map(|at| Circle::new(at, 5, look.color.stroke_width(2))))?;
        } else {
            match look.dash {
                None => context.draw_series(LineSeries::new(series.finite(), style))?,
                Some((dash, gap)) => {
                    context.draw_series(DashedLineSeries::new(series.finite(), dash, gap, style))?
                }
            };
            // A line of one point has no length.
            if series.finite().count() == 1 {
                context.draw_series(series.finite().map(|at| Circle::new(at, 3, look.color.filled())))?;
            }
        }
        if let Some(last) = series.finite().last() {
            names.push((no, context.backend_coord(&last).1));
        }
    }
    Ok(names)
}

fn draw_bars(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    chart: &Chart,
    groups: &[String],
) -> Drawn<Vec<Name>> {
    let mut context = axes(area, -0.5..groups.len().max(1) as f64 - 0.5, most(chart))?;
    let name = |x: &f64| match x.fract().abs() < 1e-6 {
        true => groups.get(*x as usize).cloned().unwrap_or_default(),
        false => String::new(),
    };
    let mut mesh = context.configure_mesh();
    draw_mesh(mesh.disable_x_mesh().x_labels(2 * groups.len() + 1).x_label_formatter(&name), chart)?;
    let width = BARS / chart.series.len().max(1) as f64;
    let mut names = Vec::new();
    for (no, series) in chart.series.iter().enumerate() {
        let color = look(no).color;
        let is_hollow = series.is_of_paper || look(no).dash.is_some();
        let style = if is_hollow { color.stroke_width(2) } else { color.filled() };
        context.draw_series(series.finite().map(|(group, value)| {
            let left = group - BARS / 2.0 + no as f64 * width;
            Rectangle::new([(left, 0.0), (left + width * 0.94, value)], style)
        }))?;
        names.push((no, 12 + no as i32 * LINE_HEIGHT));
    }
    Ok(names)
}

/// A number at an axis: `0.25`, `20`, `1,500,000`.
fn label(value: f64) -> String {
    let text = significant(value, 6).to_string();
    let (whole, fraction) =
        text.split_once('.').map_or((text.as_str(), ""), |(whole, fraction)| (whole, fraction));
    let mut grouped = String::new();
    for (no, digit) in whole.chars().enumerate() {
        let left = whole.len() - no;
        if left.is_multiple_of(3) && grouped.ends_with(|last: char| last.is_ascii_digit()) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if fraction.is_empty() { grouped } else { format!("{grouped}.{fraction}") }
}

/// The names from top to bottom, moved until none covers another, all within `height`.
fn apart(mut names: Vec<Name>, height: i32) -> Vec<Name> {
    names.sort_by_key(|(no, y)| (*y, *no));
    let mut least = LINE_HEIGHT / 2 + 2;
    for (_, y) in &mut names {
        *y = (*y).max(least);
        least = *y + LINE_HEIGHT;
    }
    let mut most = height - LINE_HEIGHT / 2 - 2;
    for (_, y) in names.iter_mut().rev() {
        *y = (*y).min(most);
        most = *y - LINE_HEIGHT;
    }
    names
}

/// A sample of how the series looks, and its name.
fn draw_name(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    series: &[Series],
    no: usize,
    y: i32,
) -> Drawn {
    let Some(of) = series.get(no) else { return Ok(()) };
    let look = look(no);
    if of.is_of_paper {
        area.draw(&Circle::new((14, y), 5, look.color.stroke_width(2)))?;
    } else {
        let style = ShapeStyle::from(&look.color).stroke_width(if of.is_thick { 4 } else { 3 });
        let (from, to) = (4, 24);
        match look.dash {
            None => area.draw(&PathElement::new([(from, y), (to, y)], style))?,
            Some((dash, gap)) => {
                for start in (from..to).step_by((dash + gap) as usize) {
                    area.draw(&PathElement::new([(start, y), ((start + dash).min(to), y)], style))?;
                }
            }
        }
    }
    let style = text().pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(shortened(&of.name), (32, y), style))?;
    Ok(())
}

/// A name that fits its room; the table below the chart has it whole.
fn shortened(name: &str) -> String {
    const MOST: usize = 26;
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    name.chars().take(MOST - 1).chain(['\u{2026}']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_lines_that_end_together_are_moved_apart() {
        let names = apart(vec![(0, 100), (1, 101), (2, 99), (3, 437)], 440);
        assert_eq!(names.iter().map(|(no, _)| *no).collect::<Vec<_>>(), [2, 0, 1, 3]);
        assert!(names.windows(2).all(|two| two[1].1 - two[0].1 >= LINE_HEIGHT), "{names:?}");
        assert!(names.iter().all(|(_, y)| (0..440).contains(y)), "{names:?}");
    }

    #[test]
    fn numbers_at_axes_have_groups_of_three_digits() {
        let labels = [0.0, 0.25, 20.0, 999.0, 1500.0, 1_500_000.0, -1234.5].map(label);
        assert_eq!(labels, ["0", "0.25", "20", "999", "1,500", "1,500,000", "-1,234.5"]);
    }

    #[test]
    fn a_chart_without_a_point_is_drawn() {
        for chart in [Chart::lines("none", "x", "y"), Chart::bars("none", &[], "y")] {
            assert!(chart.svg().unwrap().contains("<svg"));
            let of_nothing = chart.with(Series::new("nan", [(0.0, f64::NAN)]));
            assert!(of_nothing.svg().unwrap().contains("<svg"));
        }
    }
}
