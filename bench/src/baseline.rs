//! The committed ratios, and whether a run is worse.
//!
//! The file has the ratio of the medians for each of our figures that is judged, the worst of those that were written
//! into it. A run is worse if the ratio of its bests is more than the tolerance above.

use std::{collections::BTreeMap, fmt, path::Path};

use anyhow::{Context, Result};

use crate::{
    figures::{Figures, Of, Place},
    scenario,
};

/// A ratio may be this much worse than the committed one.
const TOLERANCE: f64 = 1.30;

/// The committed ratios by the names of their places.
#[derive(Debug, PartialEq)]
pub(crate) struct Baseline(BTreeMap<String, f64>);

/// Something that is not as committed.
#[derive(Debug, PartialEq)]
pub(crate) enum Finding {
    Worse {
        place: Place,
        committed: f64,
        now: f64,
    },
    /// A figure that the file does not have.
    New(Place),
    /// One that only the file has.
    Gone(String),
}

impl Baseline {
    /// Our judged figures of a run.
    pub(crate) fn of(figures: &Figures) -> Self {
        let ratios = judged(figures).filter_map(|place| Some((place, figures.ratio(place, Of::Median)?)));
        Self(ratios.map(|(place, ratio)| (place.to_string(), rounded(ratio))).collect())
    }

    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}: write it with --quick --update", path.display()))?;
        Ok(Self(serde_json::from_str(&text).with_context(|| format!("{} has no ratios", path.display()))?))
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.0)? + "\n";
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Of each ratio the worse of both: how the same code fares on a quiet machine and on a busy one. What only the
    /// other has is gone.
    pub(crate) fn or_worse_of(mut self, before: &Self) -> Self {
        for (name, ratio) in &mut self.0 {
            *ratio = before.0.get(name).map_or(*ratio, |before| ratio.max(*before));
        }
        self
    }

    /// What is worse in a run, or cannot be compared.
    pub(crate) fn findings(&self, figures: &Figures) -> Vec<Finding> {
        let mut known: BTreeMap<&str, f64> =
            self.0.iter().map(|(name, ratio)| (name.as_str(), *ratio)).collect();
        let mut findings = Vec::new();
        for place in judged(figures) {
            let Some(now) = figures.ratio(place, Of::Best) else { continue };
            match known.remove(place.to_string().as_str()) {
                Some(committed) if now > committed * TOLERANCE => {
                    findings.push(Finding::Worse { place, committed, now });
                }
                Some(_) => {}
                None => findings.push(Finding::New(place)),
            }
        }
        findings.extend(known.into_keys().map(|name| Finding::Gone(name.to_owned())));
        findings
    }
}

fn judged(figures: &Figures) -> impl Iterator<Item = Place> + '_ {
    figures.places().filter(|place| {
        let ours = scenario::find(place.table, place.who).is_some_and(scenario::Scenario::is_ours);
        ours && place.column.judged
    })
}

/// Three digits say all that a ratio can.
fn rounded(ratio: f64) -> f64 {
    format!("{ratio:.2e}").parse().unwrap_or(ratio)
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worse { place, committed, now } => {
                let percent = (now / committed - 1.0) * 100.0;
                write!(
                    f,
                    "{place}: {now:.3} of the reference instead of {committed:.3}, {percent:.0} % worse"
                )
            }
            Self::New(place) => {
                write!(f, "{place}: not in the committed file; write it with --quick --update")
            }
            Self::Gone(name) => write!(f, "{name}: committed, but not measured any more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        figures::{MEMORY, SYNC_CPU, SYNC_WALL, Table},
        scenario::{CLIENT_GO, TYPED},
    };

    /// A run in which the reference takes 10 of everything.
    fn run(cpu: &[f64], wall: f64) -> Figures {
        let mut figures = Figures::default();
        for (column, sample) in [(SYNC_CPU, 10.0), (SYNC_WALL, 10.0)] {
            figures.add(Table::Sync, CLIENT_GO, column, sample);
        }
        for sample in cpu {
            figures.add(Table::Sync, TYPED, SYNC_CPU, *sample);
        }
        figures.add(Table::Sync, TYPED, SYNC_WALL, wall);
        figures
    }

    #[test]
    fn a_run_is_worse_if_its_best_is_over_the_tolerance() {
        let committed = Baseline::of(&run(&[4.0, 5.0, 6.0], 1.0));
        assert_eq!(committed.findings(&run(&[4.0, 5.0, 6.0], 1.0)), []);
        assert_eq!(committed.findings(&run(&[9.0, 6.4], 1.0)), []);
        let findings = committed.findings(&run(&[9.0, 6.6], 1.0));
        assert!(matches!(findings[..], [Finding::Worse { committed: 0.5, .. }]), "{findings:?}");
        assert_eq!(
            findings[0].to_string(),
            "sync: ours, typed: CPU: 0.660 of the reference instead of 0.500, 32 % worse"
        );
    }

    #[test]
    fn wall_clock_and_peers_are_not_judged() {
        let committed = Baseline::of(&run(&[5.0], 1.0));
        assert_eq!(committed.0.len(), 1);
        assert_eq!(committed.findings(&run(&[5.0], 100.0)), []);
    }

    #[test]
    fn figures_that_only_one_side_has_are_findings() {
        let committed = Baseline::of(&run(&[5.0], 1.0));
        assert!(matches!(committed.findings(&Figures::default())[..], [Finding::Gone(_)]));
        let mut more = run(&[5.0], 1.0);
        more.add(Table::Sync, CLIENT_GO, MEMORY, 10.0);
        more.add(Table::Sync, TYPED, MEMORY, 1.0);
        assert!(matches!(committed.findings(&more)[..], [Finding::New(_)]));
    }

    #[test]
    fn of_what_is_written_twice_the_worse_stays() {
        let (one, other) = (Baseline::of(&run(&[5.0], 1.0)), Baseline::of(&run(&[4.0], 1.0)));
        assert_eq!(Baseline::of(&run(&[4.0], 1.0)).or_worse_of(&one), one);
        assert_eq!(Baseline::of(&run(&[5.0], 1.0)).or_worse_of(&other), one);
        assert_eq!(Baseline::of(&run(&[5.0], 1.0)).or_worse_of(&Baseline::of(&Figures::default())), one);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let path = std::env::temp_dir().join(format!("informer-bench-test-{}.json", std::process::id()));
        let committed = Baseline::of(&run(&[1.23456], 1.0));
        committed.write(&path).unwrap();
        assert_eq!(Baseline::read(&path).unwrap(), committed);
        std::fs::remove_file(&path).unwrap();
        assert!(Baseline::read(&path).is_err());
    }
}
