//! `docs/security.md` counts on tests: what it names is there.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// All files of Rust in a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names of the test functions of a file.
fn tests(source: &str) -> impl Iterator<Item = String> + '_ {
    let mut is_test = false;
    source.lines().filter_map(move |line| {
        let line = line.trim_start();
        if line.starts_with("#[") {
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            return None;
        }
        let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        let name = function.and_then(|rest| rest.split(['(', '<']).next());
        std::mem::take(&mut is_test).then_some(name).flatten().map(str::to_owned)
    })
}

#[test]
fn every_test_that_the_page_names_exists() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(crate_folder.join("../../docs/security.md")).expect("the page");
    let mut files = Vec::new();
    ["src", "tests"].iter().for_each(|folder| sources(&crate_folder.join(folder), &mut files));
    let files = files.iter().map(|file| fs::read_to_string(file).expect("a source"));
    let known: BTreeSet<String> = files.flat_map(|source| tests(&source).collect::<Vec<_>>()).collect();
    let looks_like_a_test = |word: &&str| {
        word.matches('_').count() > 1
            && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let (mut named, mut missing) = (0, Vec::new());
    // What is between two backticks is every second piece of a line.
    for code in page.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
        for word in code.split_whitespace() {
            // In a command it is a filter.
            let is_there = if looks_like_a_test(&word) {
                known.contains(word) || (word != code && known.iter().any(|name| name.contains(word)))
            } else if word == code && (word.ends_with(".rs") || word.ends_with(".mjs")) {
                // The page may leave out the folder of the binary that the tests are modules of.
                let module = word.strip_prefix("tests/").map(|module| format!("tests/it/{module}"));
                [Some(word), module.as_deref()]
                    .into_iter()
                    .flatten()
                    .any(|path| crate_folder.join(path).is_file())
            } else {
                continue;
            };
            named += 1;
            if !is_there {
                missing.push(word);
            }
        }
    }
    assert!(missing.is_empty(), "docs/security.md names what is not there: {missing:?}");
    assert!(named > 30, "it names more than {named} tests: is it read in the right way?");
}
