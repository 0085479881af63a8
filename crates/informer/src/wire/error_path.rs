//! Where in an object decoding failed, in the words in which people name fields: `spec.ports[0].name`.
//!
//! It is names and positions alone. The values around a failure may be secrets.

/// The longest path that is told.
const LONGEST: usize = 200;

/// What is open at a place: an object with its last name, or an array with its last position.
enum Step<'a> {
    Member(&'a [u8]),
    Item(usize),
}

/// The error with the path to the place that it names.
pub(super) fn describe(error: &serde_json::Error, json: &[u8]) -> String {
    let lines = json.split_inclusive(|byte| *byte == b'\n').take(error.line().saturating_sub(1));
    let offset = lines.map(<[u8]>::len).sum::<usize>() + error.column();
    match path(json.get(..offset).unwrap_or(json)) {
        path if path.is_empty() => error.to_string(),
        path => format!("{path}: {error}"),
    }
}

/// The path to the last byte of this beginning of an object.
fn path(json: &[u8]) -> String {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        let is_last = at + 1 == json.len();
        at += 1;
        match byte {
            b'"' => {
                let start = at;
                while let Some(&byte) = json.get(at) {
                    at += if byte == b'\\' { 2 } else { 1 };
                    if byte == b'"' {
                        break;
                    }
                }
                let text = json.get(start..at.saturating_sub(1)).unwrap_or_default();
                let is_name = json.get(at..).unwrap_or_default().trim_ascii_start().starts_with(b":");
                if let (Some(Step::Member(name)), true) = (steps.last_mut(), is_name) {
                    *name = text;
                }
            }
            b'{' => steps.push(Step::Member(b"")),
            b'[' => steps.push(Step::Item(0)),
            b'}' | b']' => {
                steps.pop();
                // The end of an object is where something is missed in it: that is about all of it.
                if is_last {
                    break;
                }
            }
            b',' => {
                if let Some(Step::Item(item)) = steps.last_mut() {
                    *item += 1;
                }
            }
            _ => {}
        }
    }
    let mut path = String::new();
    for step in &steps {
        match step {
            Step::Member(b"") => {}
            Step::Member(name) if path.is_empty() => path.push_str(&String::from_utf8_lossy(name)),
            Step::Member(name) => {
                path.push('.');
                path.push_str(&String::from_utf8_lossy(name));
            }
            Step::Item(item) => path.push_str(&format!("[{item}]")),
        }
        if path.len() > LONGEST {
            path.push('…');
            break;
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;

    #[test]
    fn the_place_is_told_as_a_path_without_values() {
        for (json, place) in [
            (
                r#"{"metadata":{},"spec":{"containers":[{"name":"a"},{"name":"b","ports":[{"containerPort":"x"}]}]}}"#,
                "spec.containers[1].ports[0].containerPort: ",
            ),
            (r#"{"spec":{"hostname":"s3cret","priority":"high"}}"#, "spec.priority: "),
            ("{\n \"metadata\": {\n  \"generation\": \"}\\\"\"\n }\n}", "metadata.generation: "),
            (r#"{"spec":7}"#, "spec: "),
            ("[]", "invalid type"),
        ] {
            let error = serde_json::from_str::<Pod>(json).unwrap_err();
            let text = describe(&error, json.as_bytes());
            assert!(text.starts_with(place), "{text}");
            assert!(text.contains(" at line ") && !text.contains("s3cret"), "{text}");
        }
    }

    #[test]
    fn any_beginning_of_any_bytes_has_a_path_of_bounded_length() {
        let json = format!(r#"{}"a\"]":[1,{{"b":2}}],"c{}"#, r#"{"long-name":"#.repeat(100), "}".repeat(50));
        for end in 0..json.len() {
            assert!(path(&json.as_bytes()[..end]).len() < LONGEST + 20);
        }
        path(b"]}{[,,\"\\");
    }
}
