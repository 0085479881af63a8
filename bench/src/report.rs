//! The tables, as Markdown.

use std::fmt::Write;

use crate::{
    figures::{Figures, Of, Place, Table},
    goals::goals,
    measure::Scale,
    pods::Population,
    scenario::SCENARIOS,
    setting,
};

/// The whole document: `bench/RESULTS.md`.
pub(crate) fn document(figures: &Figures, scale: &Scale, population: &Population) -> String {
    let mut text = String::from("# Ours and the peers, side by side\n\n");
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let _ = writeln!(
        text,
        "Written by `bench/run --pods {} --runs {}` on {date}; repeat it with that command. Rust and Go are needed.\n",
        scale.pods, scale.runs
    );
    for line in setting::describe() {
        let _ = writeln!(text, "- {line}");
    }
    let _ = write!(
        text,
        "- Content: {} pods of {:.1} KB of JSON on average, {:.1} KB without `managedFields`, which the server itself wrote: created \
         as kube-controller-manager, status written as kubelet ({:.0} s).\n\n\
         Everybody is a process of its own, one after another, in turns. A cell has **the ratio to the first row** of \
         best to best / median to median of {} runs, then best / median themselves. Less is better everywhere.\n",
        population.pods,
        population.bytes / 1e3,
        population.bytes_unmanaged / 1e3,
        population.took.as_secs_f64(),
        scale.runs,
    );
    for table in Table::ALL {
        let _ = write!(text, "\n## {}\n\n{}\n\n", title(table), explanation(table, scale, population));
        text.push_str(&rows(figures, table));
    }
    text.push_str(&goal_table(figures));
    text
}

/// One table.
fn rows(figures: &Figures, table: Table) -> String {
    let columns = table.columns();
    let mut text = String::from("| |");
    for column in columns {
        let _ = write!(text, " {} |", column.name);
    }
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(columns.len()));
    for scenario in SCENARIOS.iter().filter(|scenario| scenario.table == table) {
        let _ = write!(text, "| {} |", scenario.who);
        for column in columns {
            let place = Place { table, who: scenario.who, column: *column };
            let _ = write!(text, " {} |", cell(figures, place).unwrap_or_else(|| "–".to_owned()));
        }
        text.push('\n');
    }
    text
}

fn cell(figures: &Figures, place: Place) -> Option<String> {
    let [best, median] = [Of::Best, Of::Median].map(|of| figures.value(place, of));
    let values = format!("{} / {} {}", number(best?), number(median?), place.column.unit);
    if figures.reference(place.table) == Some(place.who) {
        return Some(values);
    }
    match [Of::Best, Of::Median].map(|of| figures.ratio(place, of)) {
        [Some(best), Some(median)] => Some(format!("**{} / {}** · {values}", number(best), number(median))),
        _ => Some(values),
    }
}

fn goal_table(figures: &Figures) -> String {
    let mut text = String::from(
        "\n## Goals\n\nRatios to the first row of the table, where nothing else is said. A million packed pods in one \
         process have a command of their own, `informer-bench million`.\n\n\
         | | goal | best / median | |\n|---|---|---|---|\n",
    );
    for goal in goals(figures) {
        let met = if goal.is_reached() { "reached" } else { "**missed**" };
        let (best, median) = (number(goal.best), number(goal.median));
        let _ = writeln!(text, "| {} | ≤ {} | {best} / {median} | {met} |", goal.what, goal.limit);
    }
    text
}

/// Three digits.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        0.1.. => format!("{value:.3}"),
        _ => format!("{value:.2e}")
            .parse::<f64>()
            .map_or_else(|_| value.to_string(), |short| short.to_string()),
    }
}

fn title(table: Table) -> &'static str {
    match table {
        Table::Sync => "Sync: all pods into memory",
        Table::Watch => "Watch: CPU per event",
        Table::Fanout => "Fan-out: CPU per event told to many handlers",
        Table::Labels => "List 100 objects by a label",
        Table::Reads => "Reads under writes",
        Table::Gateway => "Gateway: lists over HTTP",
        Table::Relists => "Relists: memory does not grow",
        Table::Queue => "Work queue: CPU per item",
        Table::Delays => "Work queue: items that come in hours",
    }
}

fn explanation(table: Table, scale: &Scale, population: &Population) -> String {
    match table {
        Table::Sync => "From the start of the process until a handler has heard of every pod. Memory is what stays after a collection \
            (client-go) or when it falls no more (Rust), peak the most there ever was. Bytes on the wire were counted in a run of their own. client-go asks for \
            protobuf and gzip and gets a stream, as ours do; kube-rs reads plain JSON. It runs with the system's allocator, as a program gets it by default; \
            one row has mimalloc, as ours have. \
            Ours leave `managedFields` out. Typed: the whole `Pod` of k8s-openapi. Raw: its JSON, as the gateway keeps small resources. Packed: as it came, compressed. Projection: metadata and three fields; once with `Transform::drop_metadata`. \
            Metadata: asked for as such. Ours stream unless the row says pages."
            .to_owned(),
        Table::Watch => format!(
            "{} updates of {} pods, told by a replay server as fast as they are read. client-go in protobuf, its default, and in JSON; \
             kube-rs in JSON; ours in protobuf.",
            scale.events, scale.replayed_pods
        ),
        Table::Fanout => format!(
            "{} updates of 10,000 ConfigMaps from a source in memory: nothing is decoded, CPU of the whole process.",
            scale.updates
        ),
        Table::Labels => "A lister in memory; 100 objects have the label. The median of at least 50 lists in each run.".to_owned(),
        Table::Reads => format!(
            "100,000 objects; one writer for {} s alone, then as long beside one reader that lists everything without pause. client-go writes objects one by \
             one, as its informers do; ours in batches of 100, as ours do under load.",
            scale.seconds
        ),
        Table::Gateway => format!(
            "`informer serve` beside a Go program with the same routes (dynamic informers, `encoding/json`): a list of all {} pods, and of {} by label. Wall clock is the best \
             of {} and {} requests in each run, CPU is the gateway's on average, memory is after all that. The Go gateway sends `managedFields`, ours leaves them out.",
            population.pods, population.labelled, scale.lists, scale.label_lists
        ),
        Table::Relists => format!(
            "{} lists of {} pods on the embedded server, one after another; early is after a tenth of them.",
            scale.relists, scale.relisted_pods
        ),
        Table::Queue => format!(
            "{} adds of the keys of 100,000 pods: CPU of the whole process for each add, with all that follows from it, and wall clock. One task adds an item, takes it \
             and is done, then the next; or adds all keys, and then takes them all. Producers add in bursts of 100, each key twice in a row, while workers take; what is \
             queued stays one item. Retried is with the default limiter. Two sets and a list are `HashSet`s and a `VecDeque` in a `Mutex`: what one writes without this. \
             Ours notes when a worker takes an item, for its stats; the others note nothing. Keys are `ObjectKey`s, whose clones are shared as Go's strings are, \
             in the last row `String`s.",
            scale.adds
        ),
        Table::Delays => format!(
            "{} items, and {} in a run of their own, with delays from one to ten hours: CPU and memory for each, its key included. Then the queue with the many is shut \
             down: how long that takes, and how much more memory there is than at the beginning. Memory is after a collection (client-go), or while the allocator gives \
             free memory back at once (ours).",
            scale.delayed[0], scale.delayed[1]
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        chart,
        figures::{
            Column, EVENT_CPU, FANOUT, LABELS, LEFT, LIST_WALL, MEMORY, SINGLE, SYNC_CPU, WIRE, WRITE_BESIDE,
        },
        scenario::{CLIENT_GO, KUBE_RS, OURS, PACKED, TYPED},
    };

    #[test]
    fn a_row_has_ratios_and_values_and_the_reference_only_values() {
        let mut figures = Figures::default();
        for (who, sample) in [(CLIENT_GO, 4.0), (CLIENT_GO, 5.0), (TYPED, 2.0), (TYPED, 1.0)] {
            figures.add(Table::Sync, who, SYNC_CPU, sample);
        }
        let text = rows(&figures, Table::Sync);
        assert!(text.contains("| client-go | 4.00 / 5.00 s | – |"), "{text}");
        assert!(text.contains("| ours, typed | **0.250 / 0.400** · 1.00 / 2.00 s | – |"), "{text}");
        // A part of nothing is no ratio.
        figures.add(Table::Delays, CLIENT_GO, LEFT, 0.0);
        figures.add(Table::Delays, OURS, LEFT, 3.0);
        let text = rows(&figures, Table::Delays);
        assert!(text.contains("| 3.00 / 3.00 MB |"), "{text}");
    }

    /// The rows of the README's table: where the figures of ours, kube-rs and client-go are in the results.
    const QUOTED: [(&str, Table, Column, [Option<&str>; 3]); 10] = [
        ("CPU to take in all pods", Table::Sync, SYNC_CPU, [Some(TYPED), Some(KUBE_RS), Some(CLIENT_GO)]),
        ("memory after that", Table::Sync, MEMORY, [Some(TYPED), Some(KUBE_RS), Some(CLIENT_GO)]),
        ("memory, packed", Table::Sync, MEMORY, [Some(PACKED), None, None]),
        ("bytes on the wire", Table::Sync, WIRE, [Some(TYPED), Some(KUBE_RS), Some(CLIENT_GO)]),
        (
            "CPU for an event of a watch",
            Table::Watch,
            EVENT_CPU,
            [Some(TYPED), Some("kube-rs"), Some(CLIENT_GO)],
        ),
        (
            "CPU for an event told to 100 handlers",
            Table::Fanout,
            FANOUT[2],
            [Some(OURS), None, Some(CLIENT_GO)],
        ),
        ("100 of 100,000 objects by label", Table::Labels, LABELS[2], [Some(OURS), None, Some(CLIENT_GO)]),
        (
            "a write while somebody lists everything",
            Table::Reads,
            WRITE_BESIDE,
            [Some(OURS), None, Some(CLIENT_GO)],
        ),
        (
            "all pods over HTTP, from a gateway",
            Table::Gateway,
            LIST_WALL,
            [Some(OURS), None, Some("Go gateway")],
        ),
        ("CPU for an item of a work queue", Table::Queue, SINGLE, [Some(OURS), None, Some(CLIENT_GO)]),
    ];

    fn cells(row: &str) -> Vec<&str> {
        row.trim_matches('|').split('|').map(str::trim).collect()
    }

    /// The median of a figure, as the committed results have it.
    fn median(table: Table, who: &str, column: Column) -> &'static str {
        let heading = format!("\n## {}\n", title(table));
        let section = include_str!("../RESULTS.md").split(&heading).nth(1).expect("a section of the table");
        let mut rows = section.lines().filter(|line| line.starts_with('|')).map(cells);
        let header = rows.next().expect("a header");
        let nth = header.iter().position(|name| *name == column.name).expect("a column of that name");
        let row = rows.find(|row| row[0] == who).expect("a row of that name");
        row[nth].rsplit(" / ").next().expect("a median")
    }

    /// Whether a figure is this one with fewer digits, perhaps in the next larger unit.
    fn says(short: &str, exact: &str) -> bool {
        let (Some((digits, unit)), Some((exact, exact_unit))) =
            (short.split_once(' '), exact.split_once(' '))
        else {
            return short == exact;
        };
        let scale = match (exact_unit, unit) {
            ("µs", "ms") | ("ms", "s") => 1e-3,
            (from, to) if from == to => 1.0,
            _ => return false,
        };
        let decimals = digits.split_once('.').map_or(0, |(_, after)| after.len());
        let exact: f64 = exact.parse().expect("a number");
        format!("{:.decimals$}", exact * scale) == digits
    }

    #[test]
    fn the_numbers_of_the_readme_are_those_of_the_results() {
        let mut parts = include_str!("../../README.md").split("<!-- from bench/RESULTS.md -->");
        let block = parts.nth(1).expect("the README has numbers");
        let rows: Vec<_> = block.lines().filter(|line| line.starts_with("| ")).skip(1).map(cells).collect();
        let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
        assert_eq!(names, QUOTED.map(|(name, ..)| name));
        for (row, (name, table, column, who)) in rows.iter().zip(QUOTED) {
            assert_eq!(row.len(), 1 + who.len(), "{name}");
            for (cell, who) in row[1..].iter().zip(who) {
                let figure = who.map_or("–", |who| median(table, who, column));
                assert!(says(cell, figure), "README.md has {cell} for {name}, bench/RESULTS.md {figure}");
            }
        }
    }

    #[test]
    fn a_figure_is_quoted_with_fewer_digits_or_in_a_larger_unit() {
        for (short, exact) in
            [("1.9 µs", "1.89 µs"), ("33.8 ms", "33755 µs"), ("475 MB", "475 MB"), ("–", "–")]
        {
            assert!(says(short, exact), "{short} and {exact}");
        }
        for (short, exact) in
            [("1.8 µs", "1.89 µs"), ("1.9 ms", "1.89 µs"), ("33.8 s", "33755 µs"), ("–", "2 s")]
        {
            assert!(!says(short, exact), "{short} and {exact}");
        }
    }

    #[test]
    fn the_picture_has_the_numbers_of_the_results() {
        let picture = include_str!("../../docs/images/bench.svg");
        for (who, column) in chart::ROWS.iter().flat_map(|who| chart::COLUMNS.map(|column| (who, column))) {
            let figure = median(Table::Sync, who, column);
            assert!(picture.contains(&format!(">{figure}</text>")), "{who}, {}: {figure}", column.name);
        }
    }

    #[test]
    fn numbers_have_three_digits() {
        let shown = [1234.5, 12.345, 1.2345, 0.12345, 0.012345, 0.00012345, 0.0].map(number);
        assert_eq!(shown, ["1234", "12.3", "1.23", "0.123", "0.0123", "0.000123", "0"]);
    }
}
