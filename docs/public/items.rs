//! The public items of a crate as text, read from its documentation: what users can name, with every signature.
//!
//! `public_items target/doc docs/public informer …` compares each crate with the file that is committed for it, and fails
//! where they differ, so that a change of a public face is seen in a review; with `--update` it writes the files.
//! `docs/public/run` compiles and calls it: a program of one file needs no package of the workspace.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Where the part of a page ends that the crate itself has written: what follows is said by traits.
const ENDS: [&str; 5] = [
    r#"id="trait-implementations"#,
    r#"id="deref-methods"#,
    r#"id="synthetic-implementations"#,
    r#"id="blanket-implementations"#,
    r#"id="implementors"#,
];

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let update = arguments.iter().position(|argument| argument == "--update").map(|at| arguments.remove(at));
    let [documentation, committed, crates @ ..] = &arguments[..] else {
        eprintln!("usage: public_items [--update] DOCUMENTATION COMMITTED CRATE…");
        return ExitCode::FAILURE;
    };
    let mut same = true;
    for name in crates {
        let mut items = BTreeSet::new();
        collect(&Path::new(documentation).join(name), name, &mut items);
        let file = Path::new(committed).join(format!("{name}.txt"));
        let now: String = items.iter().map(|item| format!("{item}\n")).collect();
        if update.is_some() {
            fs::write(&file, &now).expect("the file can be written");
            continue;
        }
        let before = fs::read_to_string(&file).unwrap_or_default();
        let before: BTreeSet<String> = before.lines().map(str::to_owned).collect();
        before.difference(&items).for_each(|item| println!("- {item}"));
        items.difference(&before).for_each(|item| println!("+ {item}"));
        println!("{name}: {} public items and signatures", items.len());
        same &= before == items && !items.is_empty();
    }
    if !same {
        eprintln!(
            "the public face has changed: if that is meant, run docs/public/run --update and commit what it writes"
        );
    }
    if same { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The items of a module and of those in it.
fn collect(folder: &Path, path: &str, items: &mut BTreeSet<String>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for entry in entries {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if entry.is_dir() {
            collect(&entry, &format!("{path}::{name}"), items);
        } else if let [_, name, "html"] = name.split('.').collect::<Vec<_>>()[..] {
            let page = fs::read_to_string(&entry).expect("a page is text");
            let page =
                ENDS.iter().filter_map(|end| page.find(end)).min().map_or(&page[..], |end| &page[..end]);
            // The address of something that is shown elsewhere has none.
            let Some(declaration) =
                between(page, r#"<pre class="rust item-decl"><code>"#, "</code></pre>").next()
            else {
                continue;
            };
            let item = format!("{path}::{name}");
            items.insert(format!("{item}: {}", text(declaration)));
            for signature in between(page, r#"<h4 class="code-header">"#, "</h4>") {
                items.insert(format!("{item}: {}", text(signature)));
            }
        }
    }
}

/// Every text between two marks.
fn between<'a>(page: &'a str, begin: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    page.split(begin).skip(1).filter_map(move |rest| Some(rest.split_once(end)?.0))
}

/// Without tags, on one line.
fn text(html: &str) -> String {
    let mut plain = String::new();
    for part in html.replace(r#"<div class="where">"#, " ").split('<') {
        plain.push_str(part.split_once('>').map_or(part, |(_, after)| after));
    }
    for (entity, character) in
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
    {
        plain = plain.replace(entity, character);
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
