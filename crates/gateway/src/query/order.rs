//! The order in which objects are answered.

use std::{borrow::Cow, cmp::Ordering};

use informer_model::FieldValue;
use informer_serving::Quantity;

use super::reader::{PathListError, Paths, parse_list, unquoted};

/// An order of objects: by the value at a path, those with the same value by the next path, and so on. Objects
/// that no path tells apart stay in the order they were in.
///
/// First come numbers and quantities, by their value and among each other (`100m`, `0.5`, `2Gi`); then booleans,
/// false before true; then texts, byte by byte, as which RFC 3339 times are in order too. With `[*]` in its path
/// an object is where its first element with a value is. What has no value, null, or an object or array comes
/// last, in descending order too.
#[derive(Debug)]
pub(crate) struct Order {
    paths: Paths,
    /// For each path whether it is meant from the largest to the smallest.
    descending: Vec<bool>,
}

/// The value at one path of one object. The order of the variants is theirs.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key<'j> {
    Amount(Quantity),
    Flag(bool),
    Text(Cow<'j, str>),
}

impl<'j> Key<'j> {
    fn of(json: &'j str) -> Self {
        let text = unquoted(json).unwrap_or(Cow::Borrowed(json));
        match (Quantity::parse(&text), json) {
            (Some(amount), _) => Self::Amount(amount),
            (None, "true" | "false") => Self::Flag(json == "true"),
            _ => Self::Text(text),
        }
    }
}

impl Order {
    /// Reads paths with commas between them. A `-` before a path stands for descending; a field whose name begins
    /// with one is written `['-name']`. A path that comes again says nothing new.
    pub(crate) fn parse(text: &str) -> Result<Self, PathListError> {
        let listed = parse_list(text, |text| match text.strip_prefix('-') {
            Some(path) => (true, path),
            None => (false, text),
        })?;
        let paths = Paths::new(listed.iter().map(|(_, path)| path));
        Ok(Self { paths, descending: listed.into_iter().map(|(descending, _)| descending).collect() })
    }

    /// How many paths there are.
    pub(crate) fn len(&self) -> usize {
        self.descending.len()
    }

    /// Sorts objects, of which `text` knows the JSON. Each text is read once.
    pub(crate) fn sort<T>(&self, items: &mut Vec<T>, text: impl Fn(&T) -> &str) {
        let keys: Vec<Option<Key<'_>>> = items.iter().flat_map(|item| self.keys(text(item))).collect();
        let mut rows: Vec<_> = keys.chunks(self.descending.len().max(1)).enumerate().collect();
        rows.sort_by(|(_, a), (_, b)| self.compare(a, b));
        let order: Vec<usize> = rows.into_iter().map(|(place, _)| place).collect();
        drop(keys);
        let mut unsorted: Vec<Option<T>> = items.drain(..).map(Some).collect();
        items.extend(order.into_iter().filter_map(|place| unsorted[place].take()));
    }

    fn keys<'j>(&self, json: &'j str) -> impl Iterator<Item = Option<Key<'j>>> + use<'j> {
        let found = self.paths.find(json, |_, value| matches!(value, FieldValue::Text(_)));
        found.into_iter().map(|value| value.map(Key::of))
    }

    fn compare(&self, a: &[Option<Key<'_>>], b: &[Option<Key<'_>>]) -> Ordering {
        let compared = a.iter().zip(b).zip(&self.descending).map(|((a, b), descending)| match (a, b) {
            (Some(a), Some(b)) if *descending => b.cmp(a),
            (Some(a), Some(b)) => a.cmp(b),
            _ => b.is_some().cmp(&a.is_some()),
        });
        compared.into_iter().find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of objects whose `v` has these values, in order. The name is the value.
    fn sorted(order: &str, values: &[&str]) -> Vec<String> {
        let mut objects: Vec<(String, String)> =
            values.iter().map(|value| ((*value).to_owned(), format!(r#"{{"v":{value}}}"#))).collect();
        Order::parse(order).unwrap().sort(&mut objects, |(_, json)| json);
        objects.into_iter().map(|(value, _)| value).collect()
    }

    #[test]
    fn values_are_in_the_order_of_their_kind() {
        let ascending = [
            "-5",
            r#""100m""#,
            "0.5",
            "2",
            r#""10""#,
            "1e3",
            r#""1Ki""#,
            r#""2Gi""#,
            r#""3G""#,
            "false",
            "true",
            r#""""#,
            r#""2026-01-02T00:00:00Z""#,
            r#""2026-01-10T00:00:00Z""#,
            r#""Running""#,
            r#""pod-10""#,
            r#""pod-9""#,
            r#""\u0071""#,
            r#""true""#,
            r#""é""#,
        ];
        let mut shuffled = ascending;
        shuffled.reverse();
        shuffled.rotate_left(7);
        assert_eq!(sorted("v", &shuffled), ascending);
        let descending: Vec<&str> = ascending.into_iter().rev().collect();
        assert_eq!(sorted("-v", &shuffled), descending);
    }

    #[test]
    fn what_has_no_value_is_last_in_either_direction() {
        let none = ["null", "{}", "[]", r#"{"v":1}"#];
        let mixed = ["null", "2", "{}", r#""a""#, "[]", r#"{"v":1}"#, "1"];
        let expected = |some: [&'static str; 3]| [&some[..], &none].concat();
        assert_eq!(sorted("v", &mixed), expected(["1", "2", r#""a""#]));
        assert_eq!(sorted("-v", &mixed), expected([r#""a""#, "2", "1"]));
    }

    #[test]
    fn what_is_equal_stays_where_it_was() {
        let equal = [r#""1Gi""#, r#""1024Mi""#, "1073741824", r#""1073741824""#];
        assert_eq!(sorted("v", &equal), equal);
        assert_eq!(sorted("-v", &equal), equal);
        assert_eq!(sorted("w,-x", &["3", "1", "2"]), ["3", "1", "2"]);
    }

    #[test]
    fn the_next_path_decides_where_the_first_does_not() {
        let order = Order::parse("a,-b.c,d[*].e").unwrap();
        let mut objects = vec![
            r#"{"a":"y","b":{"c":1}}"#,
            r#"{"a":"x","b":{"c":1},"d":[{},{"e":7}]}"#,
            r#"{"a":"x","b":{"c":1},"d":[{"e":null},{"e":3},{"e":9}]}"#,
            r#"{"a":"x","b":{"c":2}}"#,
            r#"{"a":"x"}"#,
            r#"{"b":{"c":9}}"#,
        ];
        let [y, x17, x13, x2, x, none] = objects[..] else { panic!("six") };
        order.sort(&mut objects, |json| json);
        assert_eq!(objects, [x2, x13, x17, x, y, none]);
    }

    #[test]
    fn a_path_that_comes_again_is_not_read_again() {
        assert_eq!(Order::parse("v,-v,w,v,w").unwrap().len(), 2);
        assert_eq!(sorted("v,-v,v", &["3", "1", "2"]), ["1", "2", "3"]);
    }

    #[test]
    fn a_minus_is_part_of_a_name_in_quotes_only() {
        let mut objects = vec![r#"{"-v":2,"v":1}"#, r#"{"-v":1,"v":2}"#];
        Order::parse("['-v']").unwrap().sort(&mut objects, |json| json);
        assert_eq!(objects, [r#"{"-v":1,"v":2}"#, r#"{"-v":2,"v":1}"#]);
        let error = Order::parse("a,--v[").unwrap_err();
        assert_eq!((error.position, error.expected), (6, "an index, `*` or a field name in quotes"));
    }
}
