//! Pages as Chromium draws them: nothing covers anything, they fit a phone, and dark ground gets light ink.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use serde_json::Value;
use tanada_chart::{Chart, Page, Series};

/// Measures the page in the browser and leaves the result in it.
const MEASURE: &str = r"
<script>
const texts = [...document.querySelectorAll('svg')].flatMap(svg => {
  const all = [...svg.querySelectorAll('text')];
  const boxes = all.map(text => ({of: text.textContent.trim(), box: text.getBBox()}));
  const covers = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y + 1 < b.y + b.height && b.y + 1 < a.y + a.height;
  const width = svg.viewBox.baseVal.width, height = svg.viewBox.baseVal.height;
  const turned = text => text.hasAttribute('transform');
  const later = no => boxes.filter((_, at) => at > no && !turned(all[at]));
  return boxes.map(({of, box}, no) => ({
    of,
    covers: turned(all[no]) ? [] : later(no).filter(other => covers(box, other.box)).map(other => other.of),
    is_inside: turned(all[no]) || (box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height),
  }));
});
const style = (selector, key) => { const found = document.querySelector(selector); return found ? getComputedStyle(found)[key] : null; };
const lines = [...document.querySelectorAll('svg')].map(svg =>
  new Set([...svg.querySelectorAll('polyline')].map(line => getComputedStyle(line).stroke)).size);
const measured = {
  texts, lines,
  width: innerWidth, needed: document.scrollingElement.scrollWidth,
  svg_width: document.querySelector('svg').getBoundingClientRect().width,
  ground: style('body', 'backgroundColor'), chart_ground: style('svg rect', 'fill'), ink: style('svg text', 'fill'),
};
document.body.innerHTML = '';
document.body.appendChild(document.createElement('pre')).textContent = JSON.stringify(measured);
</script>
";

/// A page with much on it: 19 lines of which many end together, long names, a paper's points, bars.
fn page() -> String {
    let mut lines = Chart::lines("Total time, s", "room of the fast class, %", "s");
    for no in 0..18_u32 {
        let name = if no == 3 {
            "a name that is longer than its room at the right".to_owned()
        } else {
            format!("policy {no}")
        };
        let points =
            (0..=10).map(|step| (f64::from(step) * 10.0, 100.0 - f64::from(step) * f64::from(no % 4)));
        lines = lines.with(Series::new(name, points));
    }
    lines = lines.with(Series::of_paper("the paper", [(20.0, 77.0), (80.0, 60.0)]));
    let groups = ["load", "a", "b", "c", "d", "e", "f"].map(str::to_owned);
    let mut bars = Chart::bars("Operations a second", &groups, "operations a second");
    for engine in ["tanada, with staging", "tanada, capacity only", "rocksdb, with staging"] {
        bars = bars.with(Series::new(
            engine,
            (0..7).map(|group| (f64::from(group), 123_456.0 * f64::from(group + 1))),
        ));
    }
    Page::new("A page").with_chart(&lines).unwrap().with_chart(&bars).unwrap().html()
}

/// The page as the browser measures it; none where there is no browser.
fn measured(width: u32, options: &[&str]) -> Option<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(&file, page().replace("</body>", &format!("{MEASURE}</body>"))).unwrap();
    let run = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"])
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .args(options)
        .arg(&file)
        .output();
    let output = match run {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: chromium is not installed (scripts/setup --test)");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let dom = String::from_utf8(output.stdout).unwrap();
    let json = dom.split_once("<pre>").and_then(|(_, rest)| rest.split_once("</pre>"));
    let json = json.unwrap_or_else(|| panic!("{dom}\n{}", String::from_utf8_lossy(&output.stderr))).0;
    Some(serde_json::from_str(&json.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")).unwrap())
}

/// The sum of the three colors of `rgb(r, g, b)`.
fn brightness(color: &Value) -> u32 {
    let digits = color.as_str().unwrap().replace(|c: char| !c.is_ascii_digit(), " ");
    digits.split_whitespace().take(3).map(|part| part.parse::<u32>().unwrap()).sum()
}

#[test]
fn no_text_covers_another_and_lines_have_colors_of_their_own() {
    let Some(page) = measured(1200, &[]) else { return };
    let texts = page["texts"].as_array().unwrap();
    let names = texts.iter().filter(|text| text["of"].as_str().unwrap().starts_with("policy")).count();
    assert_eq!(names, 17);
    for text in texts {
        assert_eq!(text["covers"], serde_json::json!([]), "{text}");
        assert_eq!(text["is_inside"], true, "{text}");
    }
    assert!(page["lines"][0].as_u64().unwrap() >= 8, "{}", page["lines"]);
    assert!(brightness(&page["ground"]) > 700 && brightness(&page["ink"]) < 150, "{page}");
}

#[test]
fn a_page_fits_a_phone() {
    let Some(page) = measured(500, &[]) else { return };
    let (width, needed) = (page["width"].as_f64().unwrap(), page["needed"].as_f64().unwrap());
    assert!(needed <= width, "{needed} of {width}");
    assert!(page["svg_width"].as_f64().unwrap() <= width);
}

#[test]
fn dark_ground_gets_light_ink() {
    let Some(page) = measured(1200, &["--blink-settings=preferredColorScheme=0"]) else { return };
    for ground in ["ground", "chart_ground"] {
        assert!(brightness(&page[ground]) < 150, "{ground}: {}", page[ground]);
    }
    assert!(brightness(&page["ink"]) > 600, "{}", page["ink"]);
}
