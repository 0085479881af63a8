//! The guide and the other pages of the project: links lead somewhere, all chapters are in the contents, their Rust is compiled,
//! and the metrics they tell of are those that there are.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path())
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// The pages of a folder, and of those in it.
fn pages_in(folder: &Path) -> Vec<PathBuf> {
    let (folders, files): (Vec<_>, Vec<_>) = entries(folder).partition(|path| path.is_dir());
    let below = folders.iter().flat_map(|folder| pages_in(folder));
    files.into_iter().filter(|file| is_page(file)).chain(below).collect()
}

/// What people read. It is written by hand, except for the results of the bench.
fn pages() -> Vec<PathBuf> {
    let root = root();
    let single = [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "README.md",
        "bench/CONTROLLERS.md",
        "bench/RESULTS.md",
        "deploy/README.md",
    ];
    let of_crates = entries(&root.join("crates")).map(|folder| folder.join("README.md"));
    let others = of_crates.filter(|page| page.is_file()).chain(pages_in(&root.join("docs")));
    single.iter().map(|page| root.join(page)).chain(others).collect()
}

/// A page without its blocks of code.
fn prose(page: &str) -> String {
    let mut is_code = false;
    let lines = page.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Where the links of a page lead. What is between backticks is no link, and ends with its paragraph.
fn links(prose: &str) -> Vec<&str> {
    let texts = prose.split("\n\n").flat_map(|paragraph| paragraph.split('`').step_by(2));
    let ends = texts.flat_map(|text| text.split("](").skip(1));
    ends.filter_map(|rest| rest.split(')').next()).collect()
}

/// The headings of a page, as links name them.
fn anchors(prose: &str) -> BTreeSet<String> {
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    headings.map(|heading| anchor(heading.trim_start_matches('#').trim())).collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let (mut checked, mut broken) = (0, Vec::new());
    for page in pages() {
        let text = prose(&read(&page));
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().expect("a folder").join(file),
            };
            let is_there =
                target.exists() && (heading.is_empty() || anchors(&prose(&read(&target))).contains(heading));
            checked += 1;
            if !is_there {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "these lead nowhere:\n{}", broken.join("\n"));
    assert!(checked > 80, "there are more than {checked} links: are they read in the right way?");
}

#[test]
fn every_chapter_is_in_the_contents_and_its_rust_is_compiled() {
    let docs = root().join("docs");
    let contents = read(&docs.join("SUMMARY.md"));
    let listed: BTreeSet<&str> = links(&contents).into_iter().collect();
    let library = read(&root().join("crates/informer/src/lib.rs"));
    for page in entries(&docs).filter(|path| is_page(path) && !path.ends_with("SUMMARY.md")) {
        let name = page.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(listed.contains(name), "{name} is not in docs/SUMMARY.md");
        let is_compiled = library.contains(&format!("docs/{name}\")"));
        assert_eq!(
            read(&page).contains("\n```rust"),
            is_compiled,
            "{name}: its Rust and crates/informer/src/lib.rs"
        );
    }
}

/// Words that could be the name of a metric.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_lowercase() || c == '_')).filter(|word| !word.is_empty())
}

fn is_metric(word: &str) -> bool {
    ["controller_runtime_", "informer_", "leader_election_", "workqueue_", "process_"]
        .iter()
        .any(|beginning| word.starts_with(beginning))
}

/// What the source calls a metric: the registry adds a prefix, a unit and `_total` to some.
fn name_in_source(metric: &str) -> &str {
    let name = metric.strip_suffix("_total").unwrap_or(metric);
    let of_library = name
        .strip_prefix("workqueue_")
        .or_else(|| name.strip_prefix("controller_runtime_"))
        .or_else(|| name.strip_prefix("leader_election_"))
        .or_else(|| name.strip_prefix("informer_").filter(|rest| !rest.starts_with("gateway_")));
    let Some(name) = of_library else { return name };
    ["_seconds", "_bytes"].iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name)
}

/// The names of metrics in a source: its texts of one word, except for labels and prefixes.
fn names_in(source: &str) -> Vec<&str> {
    const OTHERS: [&str; 23] = [
        "added",
        "controller",
        "controller_runtime",
        "counted",
        "deleted",
        "dropped",
        "error",
        "failed",
        "form",
        "handler",
        "informer",
        "kind",
        "leader",
        "leader_election",
        "name",
        "outcome",
        "plain",
        "requeue_after",
        "sent",
        "success",
        "suppressed",
        "updated",
        "workqueue",
    ];
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let texts = code.flat_map(|line| line.split('"').skip(1).step_by(2));
    texts.filter(|text| words(text).eq([*text]) && !OTHERS.contains(text)).collect()
}

#[test]
fn the_metrics_of_the_guide_are_those_of_the_source() {
    let page = read(&root().join("docs/operations.md"));
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let told: BTreeSet<&str> = rows.filter(|name| is_metric(name)).collect();
    let told_as_in_source: BTreeSet<&str> = told.iter().map(|metric| name_in_source(metric)).collect();

    let library = [
        "prometheus.rs",
        "prometheus/controllers.rs",
        "prometheus/events.rs",
        "prometheus/gauges.rs",
        "prometheus/leaders.rs",
        "prometheus/packing.rs",
        "prometheus/queues.rs",
    ];
    let library = library.map(|file| root().join("crates/informer/src").join(file));
    let library = library.map(|file| read(&file));
    let gateway = ["metrics.rs", "process.rs"].map(|file| root().join("crates/gateway/src").join(file));
    let gateway = gateway.map(|file| read(&file));
    let of_gateway = gateway.iter().flat_map(|source| names_in(source)).filter(|name| is_metric(name));
    let there_are: BTreeSet<&str> =
        library.iter().flat_map(|source| names_in(source)).chain(of_gateway).collect();
    assert_eq!(told_as_in_source, there_are, "docs/operations.md, and what is registered");
    assert!(told.len() > 30, "{} metrics: are they read in the right way?", told.len());

    for file in ["deploy/alerts.yaml", "deploy/dashboard.json"] {
        let text = read(&root().join(file));
        for word in words(&text).filter(|word| is_metric(word)) {
            let metric = word.strip_suffix("_bucket").unwrap_or(word);
            assert!(told.contains(metric), "{file} asks for {word}, which docs/operations.md does not know");
        }
    }
}

#[test]
fn every_alert_is_explained_and_every_explained_alert_is_there() {
    let page = read(&root().join("docs/operations.md"));
    let section = page.split("\n## Alerts\n").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows = section.expect("a section about alerts").lines();
    let explained: BTreeSet<&str> =
        rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next()).collect();
    let rules = read(&root().join("deploy/alerts.yaml"));
    let alerts = rules.lines().filter_map(|line| line.trim_start().strip_prefix("- alert: "));
    let alerts: BTreeSet<&str> = alerts.collect();
    assert_eq!(explained, alerts);
}

#[test]
fn the_dashboard_is_json_with_a_question_in_each_panel() {
    let text = read(&root().join("deploy/dashboard.json"));
    let dashboard: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let asking = panels.iter().filter(|panel| panel["targets"][0]["expr"].is_string()).count();
    let rows = panels.iter().filter(|panel| panel["type"] == "row").count();
    assert!(asking > 10 && asking + rows == panels.len(), "{asking} and {rows} of {}", panels.len());
}
