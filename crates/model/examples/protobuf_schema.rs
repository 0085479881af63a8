//! Writes `src/protobuf/schema.txt`, what the protobuf decoder knows about the messages of Kubernetes.
//!
//! ```sh
//! cargo run -p informer-model --example protobuf_schema -- facts.json > crates/model/src/protobuf/schema.txt
//! ```
//!
//! The facts are what reflection over the Go types says, as one JSON document:
//!
//! - `kinds`: `group/version/Kind` (`v1/Pod` in the core group) to the full name of its message;
//! - `messages`: full name (`k8s.io/api/core/v1.Pod`) to `fields`, and to `special` when its JSON is no object.
//!
//! A field has `n` its number, `j` its JSON name, `k` its type (`msg` or a scalar; `strlist` is a message that
//! wraps a list of texts), `m` the message, `c` `rep` or `map`, and marks that are there when true: `o` omitempty,
//! `z` omitzero, `p` pointer, `i` embedded without a JSON name. What comes out is explained at its head.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    error::Error,
    fmt::Write,
    fs,
};

use serde::Deserialize;

const HEAD: &str = "\
# The protobuf messages of Kubernetes and their JSON, written by examples/protobuf_schema.rs.
#
# kinds VERSION PACKAGE KIND...   these kinds of an apiVersion (* for any) are the messages of that name
# package PACKAGE                 the messages that follow are in it
# MESSAGE[=FORM] FIELD...         FORM when the JSON is not an object of the fields
#
# FIELD is NAME:NUMBER, marks, and TYPE: a scalar, or a message, with its package unless it is the same.
# Marks: [] list, {} map from texts, * pointer, + embedded; ? left out when zero or absent, and of a list
# without it: ! [] when absent.
";

#[derive(Deserialize)]
struct Facts {
    messages: BTreeMap<String, Message>,
    kinds: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Message {
    special: Option<String>,
    fields: Option<Vec<Field>>,
}

#[derive(Deserialize)]
struct Field {
    n: u32,
    j: String,
    k: String,
    m: Option<String>,
    c: Option<String>,
    #[serde(default)]
    o: bool,
    #[serde(default)]
    z: bool,
    #[serde(default)]
    p: bool,
    #[serde(default)]
    i: bool,
}

/// Package and message: `k8s.io/api/core/v1.Pod` is `core/v1` and `Pod`.
fn split(full_name: &str) -> Result<(String, &str), String> {
    let (path, name) = full_name.rsplit_once('.').ok_or_else(|| format!("{full_name} has no package"))?;
    let mut folders = path.rsplit('/');
    let last = folders.next().unwrap_or_default();
    let is_version = last.starts_with('v') && last[1..].starts_with(|c: char| c.is_ascii_digit());
    let package = match folders.next() {
        Some(group) if is_version => format!("{group}/{last}"),
        _ => last.to_owned(),
    };
    Ok((package, name))
}

/// The messages that can be met in an object of some kind.
fn reachable(facts: &Facts) -> Result<BTreeSet<&str>, String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = facts.kinds.values().map(String::as_str).collect();
    while let Some(name) = open.pop() {
        if found.insert(name) {
            let message = facts.messages.get(name).ok_or_else(|| format!("there is no message {name}"))?;
            open.extend(message.fields.iter().flatten().filter_map(|field| field.m.as_deref()));
        }
    }
    Ok(found)
}

/// Options and watch events are registered in every group and version: once with `*` is enough.
fn kinds(facts: &Facts) -> Result<BTreeMap<(&str, String), BTreeSet<&str>>, String> {
    let mut homes: BTreeMap<&str, usize> = BTreeMap::new();
    facts.kinds.values().for_each(|message| *homes.entry(message).or_default() += 1);
    let mut lines: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    for (kind, message) in &facts.kinds {
        let (version, kind) = kind.rsplit_once('/').ok_or_else(|| format!("{kind} has no version"))?;
        let (package, name) = split(message)?;
        if kind != name {
            return Err(format!("the kind {version} {kind} has another name than its message {message}"));
        }
        let version = if homes[message.as_str()] > 1 { "*" } else { version };
        lines.entry((version, package)).or_default().insert(kind);
    }
    Ok(lines)
}

fn field(package: &str, field: &Field, of_a_list: bool) -> Result<String, String> {
    let single_message = field.k == "msg" && field.c.is_none() && !field.p;
    let mut text = format!("{}:{}", field.j, field.n);
    text.push_str(match (field.c.as_deref(), field.i, field.p) {
        (Some("rep"), false, false) => "[]",
        (Some("map"), false, false) => "{}",
        (None, true, false) => "+",
        (None, false, true) => "*",
        (None, false, false) => "",
        _ => return Err(format!("{} is several things at once", field.j)),
    });
    // A struct is always written, whatever omitempty says.
    if field.z || field.o && !single_message {
        text.push('?');
    } else if of_a_list && field.j == "items" && field.c.as_deref() == Some("rep") {
        text.push('!');
    }
    match field.m.as_deref() {
        Some(message) if field.k == "msg" => match split(message)? {
            (other, name) if other != package => write!(text, "{other}.{name}").map_err(|e| e.to_string())?,
            (_, name) => text.push_str(name),
        },
        None if field.k != "msg" => text.push_str(&field.k),
        _ => return Err(format!("{} is a {} and a message", field.j, field.k)),
    }
    Ok(text)
}

fn schema(facts: &Facts) -> Result<String, String> {
    let mut packages: BTreeMap<String, BTreeMap<&str, &Message>> = BTreeMap::new();
    for full_name in reachable(facts)? {
        let (package, name) = split(full_name)?;
        if packages.entry(package).or_default().insert(name, &facts.messages[full_name]).is_some() {
            return Err(format!("two packages are shortened to that of {full_name}"));
        }
    }
    let mut lines = vec![HEAD.to_owned()];
    for ((version, package), kinds) in kinds(facts)? {
        lines.push(format!("kinds {version} {package} {}", Vec::from_iter(kinds).join(" ")));
    }
    for (package, messages) in packages {
        lines.push(format!("\npackage {package}"));
        for (name, message) in messages {
            let form = message.special.as_ref().map(|form| format!("={form}")).unwrap_or_default();
            let mut fields = Vec::from_iter(message.fields.iter().flatten());
            fields.sort_by_key(|field| field.n);
            let of_a_list =
                fields.iter().any(|f| f.m.as_deref().is_some_and(|m| m.ends_with("/meta/v1.ListMeta")));
            let fields: Result<Vec<String>, String> =
                fields.into_iter().map(|of_message| field(&package, of_message, of_a_list)).collect();
            let fields = fields.map_err(|error| format!("{package}.{name}: {error}"))?;
            lines.push([vec![format!("{name}{form}")], fields].concat().join(" "));
        }
    }
    Ok(lines.join("\n") + "\n")
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: protobuf_schema FACTS.json > schema.txt")?;
    print!("{}", schema(&serde_json::from_str(&fs::read_to_string(path)?)?)?);
    Ok(())
}
