//! The colors of series, on light and on dark ground.

use plotters::style::RGBColor;

/// Colors that color-blind readers tell apart, without the yellow that nobody sees on white: Okabe and Ito, "Color
/// Universal Design" (2008), and a grey.
const COLORS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(68, 68, 136),
    RGBColor(119, 119, 119),
];

/// What is drawn, but for series: ink, faint ink, grid, ground.
pub const INK: RGBColor = RGBColor(34, 34, 34);
pub const GRID: RGBColor = RGBColor(224, 224, 224);
pub const GROUND: RGBColor = RGBColor(255, 255, 255);

/// How a series looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    pub color: RGBColor,
    /// Pixels of a dash and of the gap after it; none for a whole line.
    pub dash: Option<(i32, i32)>,
}

/// The look of series `no`: eight colors, then the same dashed, then dotted.
pub fn look(no: usize) -> Look {
    let dash = match no / COLORS.len() {
        0 => None,
        1 => Some((8, 4)),
        _ => Some((2, 3)),
    };
    Look { color: COLORS[no % COLORS.len()], dash }
}

fn hex(color: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", color.0, color.1, color.2)
}

/// Rules of CSS that give drawn charts other colors on dark ground.
pub fn dark_rules() -> String {
    let pairs = [
        (INK, "#e4e4e4"),
        (GRID, "#3a3a3a"),
        (GROUND, "#161616"),
        (COLORS[0], "#56a3e0"),
        (COLORS[6], "#a0a0f0"),
    ];
    let rule = |(light, dark): (RGBColor, &str)| {
        let light = hex(light);
        format!("svg [fill=\"{light}\"]{{fill:{dark}}}svg [stroke=\"{light}\"]{{stroke:{dark}}}")
    };
    pairs.into_iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_of_24_series_look_alike() {
        let looks: Vec<Look> = (0..24).map(look).collect();
        for (no, one) in looks.iter().enumerate() {
            assert!(!looks[..no].contains(one), "{no}");
        }
    }
}
