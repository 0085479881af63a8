//! Suggestions for a name that matches no resource.

use informer_model::ResourceArg;

use super::catalog::ServedResource;

/// So many names are suggested.
const SUGGESTIONS: usize = 3;

/// Names that differ little from what was typed, the nearest first.
pub(super) fn nearest(typed: &ResourceArg, resources: &[ServedResource]) -> Vec<String> {
    let typed = typed.to_string();
    // A third of the letters may be wrong; of a short name, one.
    let tolerance = (typed.len() / 3).clamp(1, 6);
    let mut near: Vec<(usize, String)> = Vec::new();
    for served in resources {
        let name = served.name();
        let full = format!("{}.{}.{}", served.api.plural, served.api.version, served.api.group);
        let spellings = [&served.api.plural, &served.singular, &name, &full].into_iter();
        // The lengths tell of most names that they are not near.
        let close =
            spellings.chain(&served.short_names).filter(|name| name.len().abs_diff(typed.len()) <= tolerance);
        let distance = close.map(|name| distance(&typed, name)).min();
        if let Some(distance) = distance.filter(|distance| *distance <= tolerance)
            && !near.iter().any(|(_, known)| *known == name)
        {
            near.push((distance, name));
        }
    }
    // The sort is stable: among equals the server's order decides.
    near.sort_by_key(|(distance, _)| *distance);
    near.truncate(SUGGESTIONS);
    near.into_iter().map(|(_, name)| name).collect()
}

/// How many letters are to be changed, added, removed or swapped with a neighbour to get from one to the other.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows: [Vec<usize>; 3] = [Vec::new(), Vec::new(), (0..=other.len()).collect()];
    for (i, a) in one.iter().enumerate() {
        rows.rotate_left(1);
        let [before, above, row] = &mut rows;
        row.clear();
        row.push(i + 1);
        for (j, b) in other.iter().enumerate() {
            let mut best = (above[j] + usize::from(a != b)).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && one[i - 1] == *b && *a == other[j - 1] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
    }
    rows[2].last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_typing() {
        for (one, other, expected) in [
            ("", "", 0),
            ("", "ab", 2),
            ("pods", "pods", 0),
            ("psdo", "pods", 2),
            ("opds", "pods", 1),
            ("a", "", 1),
        ] {
            assert_eq!((distance(one, other), distance(other, one)), (expected, expected), "{one} {other}");
        }
    }
}
