//! `bench/CONTROLLERS.md`.

use std::{fmt::Write, fs, path::Path};

use anyhow::{Context, Result};

use super::{Figures, Options, Side};
use crate::{report::number, setting};

/// The lines of a side's controller that are code: no empty ones, no comments, none of the witness.
pub(super) fn lines(side: Side) -> Result<usize> {
    let path = Path::new(setting::BENCH).join(side.source());
    let source = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(source.lines().filter(|line| is_code(line)).count())
}

fn is_code(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with("//") && !line.contains("witness")
}

pub(super) fn document(options: &Options, runs: &[Vec<Figures>; 2]) -> Result<String> {
    let Options { few, many, most, .. } = options;
    let mut text = format!(
        "# One controller, written twice\n\n\
         Written by `bench/run controllers` on {}; repeat it with that command. Less is better everywhere.\n\n",
        jiff::Timestamp::now().strftime("%Y-%m-%d"),
    );
    for line in setting::controllers(options.control_plane.is_some()) {
        let _ = writeln!(text, "- {line}");
    }
    let made = options.runs;
    let _ = writeln!(
        text,
        "- Median of {made} runs, each side in a process of its own with a server of its own, in turns.\n\n{TEXT}\n"
    );
    let _ = writeln!(text, "| | {} | {} |\n|---|---|---|", Side::Theirs.name(), Side::Ours.name());
    for (nth, (name, unit, _)) in runs[0].first().context("nothing was measured")?.iter().enumerate() {
        let sizes = [("FEW", few), ("MANY", many), ("MOST", most)];
        let name =
            sizes.iter().fold((*name).to_owned(), |name, (word, size)| name.replace(word, &size.to_string()));
        let [theirs, ours] = runs.each_ref().map(|runs| cell(unit, median(runs, nth)));
        let _ = writeln!(text, "| {name} | {theirs} | {ours} |");
    }
    Ok(text)
}

const TEXT: &str = "\
A `Website` becomes a ConfigMap, a Deployment and a Service. It has a finalizer and a status with a condition, and is reconciled when its
generation changes, or a child does. Both sides have four workers and the same allocator. They share [`website.rs`](src/controllers/website.rs): the
types, and which fields of each child are the controller's. What differs is [`ours.rs`](src/controllers/ours.rs) and kube-runtime's
[`website.rs`](peers/kube-rs/src/website.rs).

- With kube-runtime every call applies all three children and the status on the server (server-side apply, forced), as its guide has it. It caches no children: that saves memory, leaves nothing to compare
  with, and nothing to be stale but the website. Generation and finalizers are predicates (which needs its feature `unstable-runtime`), `managedFields`
  are not kept. After an error it waits for 5 s, as in its guide.
- With informer the children are cached, and a write is sent where something differs. A call for a website waits until the caches show what the last
  one wrote.
- Leader election is in neither. kube-runtime has none; here it is a few lines around `run`, as in
  [`examples/website.rs`](../examples/website.rs).

Lines are those of the two files that differ, without empty ones, comments, and those that hand objects to the witness, which counts stale reads. A read is stale if
the cache has an older version of an object than a write of this process was answered with. A proxy between controller and server counts
requests, and as refused those that were answered with 400 or more; lists and watches are left out, and so is what a user and a kubelet send, who are played by the driver. A change has
reached the status when `observedGeneration` is that of the change. The proxy cuts watches, and answers a write with 502.";

fn cell(unit: &str, figure: f64) -> String {
    match unit {
        "" => format!("{figure:.0}"),
        unit => format!("{} {unit}", number(figure)),
    }
}

fn median(runs: &[Figures], nth: usize) -> f64 {
    let mut figures: Vec<f64> = runs.iter().filter_map(|run| Some(run.get(nth)?.2)).collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_code_without_the_witness() {
        for line in ["", "    ", "//! What it is.", "    // Why.", "        self.witness.read(Some(&*site));"]
        {
            assert!(!is_code(line), "{line:?}");
        }
        for line in ["}", "    let site = 1; // of many"] {
            assert!(is_code(line), "{line:?}");
        }
        for side in Side::BOTH {
            assert!((50..500).contains(&lines(side).unwrap()), "{side:?}");
        }
    }

    #[test]
    fn the_report_has_the_medians_and_the_sizes() {
        let options = Options { few: 50, many: 1_000, most: 10_000, runs: 3, control_plane: None };
        let figures = |value| vec![("requests for FEW of MANY, not MOST", "", value), ("… CPU", "s", value)];
        let runs = [[9.0, 1.0, 5.0].map(figures).to_vec(), [4.0, 2.0, 30.0].map(figures).to_vec()];
        let text = document(&options, &runs).unwrap();
        assert!(text.contains("\n| requests for 50 of 1000, not 10000 | 5 | 4 |\n"), "{text}");
        assert!(text.contains("\n| … CPU | 5.00 s | 4.00 s |\n"), "{text}");
    }
}
