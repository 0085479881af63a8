//! What a scenario is expected to show: a file of lines, among them the differences between the servers that are known.

use std::{env, fmt::Write, fs, path::PathBuf};

const KNOWN: &str = "known: ";
const REAL: &str = "real: ";
const EMBEDDED: &str = "embedded: ";
/// Stands where somebody has to write why there is a difference.
const UNEXPLAINED: &str = "???";

/// Which server said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Real,
    Embedded,
}

#[derive(Debug, PartialEq, Eq)]
enum Entry {
    /// Both servers say this.
    Both(String),
    /// They differ, and this is why.
    Known { reason: String, real: Vec<String>, embedded: Vec<String> },
}

/// Compares what the servers said with the file of the scenario, or writes it.
pub(crate) fn check(scenario: &str, embedded: &[String], real: Option<&[String]>) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("expected/{scenario}.txt"));
    let mut entries = read(&fs::read_to_string(&path).unwrap_or_default());
    if env::var_os("INFORMER_E2E_UPDATE").is_some() {
        let real =
            real.expect("the files are written from the real server: INFORMER_CONTROL_PLANE must name one");
        entries = merge(real, embedded, &entries);
        fs::write(&path, write(&entries)).expect("the file can be written");
    }
    let mut complaints = String::new();
    for (speaker, said) in [(Speaker::Embedded, Some(embedded)), (Speaker::Real, real)] {
        let wanted = of(&entries, speaker);
        if let Some(said) = said.filter(|said| *said != wanted.as_slice()) {
            let _ = writeln!(complaints, "{}", difference(scenario, speaker, &wanted, said));
        }
    }
    let unexplained =
        entries.iter().filter(|entry| matches!(entry, Entry::Known { reason, .. } if reason == UNEXPLAINED));
    let unexplained = unexplained.count();
    if unexplained > 0 {
        let _ = writeln!(complaints, "{unexplained} differences in {} have no reason", path.display());
    }
    assert!(complaints.is_empty(), "\n{complaints}");
}

/// What one of the servers is expected to say.
fn of(entries: &[Entry], speaker: Speaker) -> Vec<String> {
    let lines = entries.iter().flat_map(|entry| match (entry, speaker) {
        (Entry::Both(line), _) => std::slice::from_ref(line),
        (Entry::Known { real, .. }, Speaker::Real) => real,
        (Entry::Known { embedded, .. }, Speaker::Embedded) => embedded,
    });
    lines.cloned().collect()
}

fn read(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    for line in text.lines() {
        if let Some(reason) = line.strip_prefix(KNOWN) {
            entries.push(Entry::Known { reason: reason.into(), real: Vec::new(), embedded: Vec::new() });
        } else if let (Some(said), Some(Entry::Known { real, .. })) =
            (line.strip_prefix(REAL), entries.last_mut())
        {
            real.push(said.into());
        } else if let (Some(said), Some(Entry::Known { embedded, .. })) =
            (line.strip_prefix(EMBEDDED), entries.last_mut())
        {
            embedded.push(said.into());
        } else {
            entries.push(Entry::Both(line.into()));
        }
    }
    entries
}

fn write(entries: &[Entry]) -> String {
    let mut text = String::new();
    for entry in entries {
        match entry {
            Entry::Both(line) => text += &format!("{line}\n"),
            Entry::Known { reason, real, embedded } => {
                text += &format!("{KNOWN}{reason}\n");
                real.iter().for_each(|line| text += &format!("{REAL}{line}\n"));
                embedded.iter().for_each(|line| text += &format!("{EMBEDDED}{line}\n"));
            }
        }
    }
    text
}

/// What both say, with the reasons that were given for the same differences before.
fn merge(real: &[String], embedded: &[String], before: &[Entry]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for (speakers, line) in align(real, embedded) {
        if speakers == (true, true) {
            entries.push(Entry::Both(line));
            continue;
        }
        if !matches!(entries.last(), Some(Entry::Known { .. })) {
            let reason = UNEXPLAINED.to_owned();
            entries.push(Entry::Known { reason, real: Vec::new(), embedded: Vec::new() });
        }
        if let Some(Entry::Known { real, embedded, .. }) = entries.last_mut() {
            if speakers.0 { real.push(line) } else { embedded.push(line) }
        }
    }
    for entry in &mut entries {
        let Entry::Known { reason, real, embedded } = entry else { continue };
        let same = before.iter().find_map(|entry| match entry {
            Entry::Known { reason, real: r, embedded: e } if r == real && e == embedded => Some(reason),
            _ => None,
        });
        *reason = same.cloned().unwrap_or(UNEXPLAINED.into());
    }
    entries
}

/// The lines of both in one order, each with whether it is in the one and in the other, sharing as many as possible.
fn align(one: &[String], other: &[String]) -> Vec<((bool, bool), String)> {
    // shared[i][j]: how many lines the rests from i and from j can share.
    let mut shared = vec![vec![0_usize; other.len() + 1]; one.len() + 1];
    for i in (0..one.len()).rev() {
        for j in (0..other.len()).rev() {
            shared[i][j] = if one[i] == other[j] {
                shared[i + 1][j + 1] + 1
            } else {
                shared[i + 1][j].max(shared[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < one.len() || j < other.len() {
        if i < one.len() && j < other.len() && one[i] == other[j] {
            lines.push(((true, true), one[i].clone()));
            (i, j) = (i + 1, j + 1);
        } else if j == other.len() || (i < one.len() && shared[i + 1][j] >= shared[i][j + 1]) {
            lines.push(((true, false), one[i].clone()));
            i += 1;
        } else {
            lines.push(((false, true), other[j].clone()));
            j += 1;
        }
    }
    lines
}

/// The lines that differ, each with the nearest line before it that begins a step.
fn difference(scenario: &str, speaker: Speaker, wanted: &[String], said: &[String]) -> String {
    let name = if speaker == Speaker::Real { "real" } else { "embedded" };
    let mut text = format!(
        "{scenario}: the {name} server does not say what expected/{scenario}.txt says of it\n  \
         - what is written there\n  + what the {name} server says\n"
    );
    let (mut step, mut shown) = (None, None);
    for (speakers, line) in align(wanted, said) {
        if !line.starts_with(' ') {
            step = Some(line.clone());
        }
        if speakers == (true, true) {
            continue;
        }
        if let Some(step) = step.as_ref().filter(|step| Some(*step) != shown.as_ref() && **step != line) {
            let _ = writeln!(text, "    {step}");
            shown = Some(step.clone());
        }
        let _ = writeln!(text, "  {} {line}", if speakers.0 { '-' } else { '+' });
    }
    text
}

#[test]
fn a_difference_keeps_its_reason_as_long_as_it_is_the_same() {
    let lines = |text: &str| -> Vec<String> { text.lines().map(Into::into).collect() };
    let (real, embedded) = (lines("GET a\n  200\n  x\nGET b\n  404"), lines("GET a\n  406\nGET b\n  404"));
    let first = merge(&real, &embedded, &[]);
    assert_eq!(write(&first), "GET a\nknown: ???\nreal:   200\nreal:   x\nembedded:   406\nGET b\n  404\n");
    let explained = read(&write(&first).replace(UNEXPLAINED, "not yet"));
    assert_eq!(merge(&real, &embedded, &explained), explained);
    assert_eq!((of(&explained, Speaker::Real), of(&explained, Speaker::Embedded)), (real.clone(), embedded));
    let other = lines("GET a\n  500\nGET b\n  404");
    assert!(
        write(&merge(&real, &other, &explained)).contains(UNEXPLAINED),
        "another difference, another reason"
    );
    let text = difference("story", Speaker::Embedded, &of(&explained, Speaker::Embedded), &other);
    assert!(text.contains("embedded server") && text.contains("    GET a\n  -   406\n  +   500\n"), "{text}");
}
