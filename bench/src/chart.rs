//! The first table as a picture, an SVG: what it takes to have all pods in memory.
//!
//! It brings its own background, for light and for dark surroundings.

use std::fmt::Write;

use crate::{
    figures::{Column, Figures, MEMORY, Of, Place, SYNC_CPU, Table, WIRE},
    report::number,
    scenario::{self, CLIENT_GO, KUBE_RS, METADATA, PACKED, Scenario, TYPED},
};

pub(crate) const ROWS: [&str; 5] = [CLIENT_GO, KUBE_RS, TYPED, PACKED, METADATA];
pub(crate) const COLUMNS: [Column; 3] = [SYNC_CPU, MEMORY, WIRE];

/// Room for the names, a column, its longest bar, what is above the bars, and a bar with its distance to the next one.
const NAMES: usize = 140;
const COLUMN: usize = 240;
const BAR: f64 = 150.0;
const TOP: usize = 64;
const LINE: usize = 28;

const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#1f2328}.head{font-weight:600}.paper{fill:#fff}.peer{fill:#8c959f}\
    .ours{fill:#0969da}@media(prefers-color-scheme:dark){text{fill:#e6edf3}.paper{fill:#0d1117}.peer{fill:#6e7681}.ours{fill:#2f81f7}}";

/// Medians as bars; the longest of a column is as long as the others' longest.
pub(crate) fn svg(figures: &Figures, pods: usize) -> String {
    let (width, height) = (NAMES + COLUMN * COLUMNS.len(), TOP + LINE * ROWS.len());
    let title = format!("{pods} pods into memory: less is better");
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n<rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n\
         <text class=\"head\" x=\"12\" y=\"24\">{title}</text>\n"
    );
    for (row, who) in ROWS.iter().enumerate() {
        let _ = writeln!(svg, "<text x=\"12\" y=\"{}\">{who}</text>", TOP + LINE * row + 14);
    }
    for (nth, column) in COLUMNS.into_iter().enumerate() {
        let x = NAMES + COLUMN * nth;
        let _ = writeln!(svg, "<text class=\"head\" x=\"{x}\" y=\"50\">{}</text>", column.name);
        let median = |who| figures.value(Place { table: Table::Sync, who, column }, Of::Median);
        let longest = ROWS.into_iter().filter_map(median).fold(f64::MIN_POSITIVE, f64::max);
        for (row, who) in ROWS.into_iter().enumerate() {
            let Some(value) = median(who) else { continue };
            let ours = scenario::find(Table::Sync, who).is_some_and(Scenario::is_ours);
            let (class, y) = (if ours { "ours" } else { "peer" }, TOP + LINE * row);
            let length = BAR * value / longest;
            let _ = writeln!(
                svg,
                "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{length:.1}\" height=\"18\" rx=\"2\"/>\
                 <text x=\"{:.1}\" y=\"{}\">{} {}</text>",
                x as f64 + length + 6.0,
                y + 14,
                number(value),
                column.unit
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_figures_and_what_was_not_measured_has_none() {
        let mut figures = Figures::default();
        for (who, sample) in [(CLIENT_GO, 4.0), (CLIENT_GO, 1.0), (CLIENT_GO, 2.0), (TYPED, 0.5)] {
            figures.add(Table::Sync, who, SYNC_CPU, sample);
        }
        let picture = svg(&figures, 300);
        assert!(picture.contains("<title>300 pods into memory"), "{picture}");
        let bar = |class, y, length: &str, text: &str| {
            format!(
                "<rect class=\"{class}\" x=\"{NAMES}\" y=\"{y}\" width=\"{length}\" height=\"18\" rx=\"2\"/>{text}"
            )
        };
        let theirs = bar("peer", TOP, "150.0", "<text x=\"296.0\" y=\"78\">2.00 s</text>");
        assert!(picture.contains(&theirs), "{theirs} in {picture}");
        let ours = bar("ours", TOP + 2 * LINE, "37.5", "<text x=\"183.5\" y=\"134\">0.500 s</text>");
        assert!(picture.contains(&ours), "{ours} in {picture}");
        assert_eq!(picture.matches("<rect class=\"ours\"").count(), 1);
        assert!(picture.ends_with("</svg>\n"));
    }
}
