//! The order in which objects are answered.

use std::{
    borrow::Cow,
    cmp::Ordering,
    hash::{BuildHasher, Hasher, RandomState},
    str::Chars,
    sync::LazyLock,
};

use informer_model::{FieldPath, FieldValue};
use informer_serving::Quantity;

use super::{
    readable::Readable,
    reader::{PathListError, Paths, parse_list, unquoted, with_value},
};
use crate::cache::beside::{Beside, Slot};

/// So many characters are kept of a text that had to be unpacked, and a hash of all of it; where they do not decide, it is
/// unpacked again. Sorted by what is long, packed objects would otherwise all be in memory.
const KEPT: usize = 256;

/// An order of objects: by the value at a path, those with the same value by the next path, and so on. Objects
/// that no path tells apart stay in the order they were in.
///
/// First come numbers and quantities, by their value and among each other (`100m`, `0.5`, `2Gi`); then booleans,
/// false before true; then texts, byte by byte, as which RFC 3339 times are in order too. With `[*]` in its path
/// an object is where its first element with a value is. What has no value, null, or an object or array comes
/// last, in descending order too.
#[derive(Debug)]
pub(crate) struct Order(Vec<Step>);

/// One path of an order.
#[derive(Debug)]
struct Step {
    path: FieldPath,
    /// Where its value stands beside packed objects.
    slot: Option<Slot>,
    /// Whether it is meant from the largest to the smallest.
    descending: bool,
}

/// The value at one path of one object. It borrows from the JSON where that is at hand: a sort keeps one for each object, and
/// no long text. The order of the variants is theirs.
enum Key<'j> {
    Amount(Quantity),
    Flag(bool),
    Text(Text<'j>),
}

impl<'j> Key<'j> {
    fn of(json: &'j str) -> Self {
        let text = unquoted(json);
        let is_escaped = json.contains('\\') && text.is_some();
        let inside = json.strip_prefix('"').and_then(|json| json.strip_suffix('"'));
        let stands = if text.is_some() { inside.unwrap_or(json) } else { json };
        match (Quantity::parse(text.as_deref().unwrap_or(json)), json) {
            (Some(amount), _) => Self::Amount(amount),
            (None, "true" | "false") => Self::Flag(json == "true"),
            _ => Self::Text(Text { stands: stands.into(), is_escaped, cut: None }),
        }
    }

    /// What is kept of it when the text it borrows from is gone.
    fn kept(self) -> Key<'static> {
        match self {
            Self::Amount(amount) => Key::Amount(amount),
            Self::Flag(flag) => Key::Flag(flag),
            Self::Text(text) => {
                let stands: String = text.says().take(KEPT).collect();
                let cut = text.says().nth(KEPT).is_some().then(|| text.hash());
                Key::Text(Text { stands: stands.into(), is_escaped: false, cut })
            }
        }
    }

    /// None where too little is known of both.
    fn compare(&self, other: &Key<'_>) -> Option<Ordering> {
        Some(match (self, other) {
            (Self::Amount(one), Key::Amount(other)) => one.cmp(other),
            (Self::Flag(one), Key::Flag(other)) => one.cmp(other),
            (Self::Text(one), Key::Text(other)) => return one.compare(other),
            _ => self.rank().cmp(&other.rank()),
        })
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Amount(_) => 0,
            Self::Flag(_) => 1,
            Self::Text(_) => 2,
        }
    }
}

/// A text as it stands in JSON, between its quotes. It is compared by what it says.
struct Text<'j> {
    stands: Cow<'j, str>,
    is_escaped: bool,
    /// Where it goes on after the characters that are kept of it: a hash of the whole.
    cut: Option<u64>,
}

impl Text<'_> {
    fn says(&self) -> Says<'_> {
        Says { rest: self.stands.chars(), is_escaped: self.is_escaped }
    }

    fn hash(&self) -> u64 {
        static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let mut hasher = HASHES.build_hasher();
        self.says().for_each(|character| hasher.write_u32(character.into()));
        hasher.finish()
    }

    fn compare(&self, other: &Text<'_>) -> Option<Ordering> {
        if self.cut.is_none() && other.cut.is_none() {
            return Some(match self.is_escaped || other.is_escaped {
                // Characters have the order of their bytes.
                true => self.says().cmp(other.says()),
                false => (*self.stands).cmp(&*other.stands),
            });
        }
        let goes_on = |text: &Text<'_>| text.cut.is_some() || text.says().nth(KEPT).is_some();
        let hash = |text: &Text<'_>| text.cut.unwrap_or_else(|| text.hash());
        match self.says().take(KEPT).cmp(other.says().take(KEPT)) {
            Ordering::Equal if goes_on(self) && goes_on(other) => {
                (hash(self) == hash(other)).then_some(Ordering::Equal)
            }
            Ordering::Equal => Some(goes_on(self).cmp(&goes_on(other))),
            decided => Some(decided),
        }
    }
}

/// The characters that a text says, one after the other: what is long is not written anew to be compared.
struct Says<'j> {
    rest: Chars<'j>,
    is_escaped: bool,
}

impl Says<'_> {
    /// The four digits of `\u`.
    fn unit(&mut self) -> Option<u32> {
        (0..4).try_fold(0, |unit, _| Some(unit * 16 + self.rest.next()?.to_digit(16)?))
    }
}

impl Iterator for Says<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self.rest.next()? {
            '\\' if self.is_escaped => {}
            character => return Some(character),
        }
        Some(match self.rest.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = self.unit()?;
                if !(0xd800..0xdc00).contains(&first) {
                    return char::from_u32(first);
                }
                // The second half of a pair follows.
                self.rest.nth(1)?;
                let second = self.unit()?.checked_sub(0xdc00)?;
                return char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + second);
            }
            character => character,
        })
    }
}

impl Order {
    /// How many paths there may be.
    pub(crate) const MOST: usize = 8;

    /// Reads paths with commas between them. A `-` before a path stands for descending; a field whose name begins
    /// with one is written `['-name']`. A path that comes again says nothing new. What is beyond the most that there may be
    /// is not read.
    pub(crate) fn parse(text: &str) -> Result<Self, PathListError> {
        let listed = parse_list(text, Self::MOST, |text| match text.strip_prefix('-') {
            Some(path) => (true, path),
            None => (false, text),
        })?;
        let step = |(descending, path)| Step { slot: Slot::of(&path), path, descending };
        Ok(Self(listed.into_iter().map(step).collect()))
    }

    /// How many paths there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Sorts objects. A path is read of those only that the paths before it do not tell apart, and one value of each object is
    /// kept at a time.
    pub(crate) fn sort<T: Readable>(&self, items: &mut Vec<T>) {
        let single: Vec<Reader<'_>> = (0..self.len()).map(|step| Reader::new(&self.0[step..=step])).collect();
        let rest: Vec<Reader<'_>> = (0..self.len()).map(|step| Reader::new(&self.0[step..])).collect();
        let mut order: Vec<usize> = (0..items.len()).collect();
        // What is to be sorted, from which step on.
        let mut open = vec![(0..items.len(), 0)];
        while let Some((range, from)) = open.pop() {
            let part = &mut order[range.clone()];
            let parted = part.iter().filter_map(|place| items.get(*place));
            let Some(step) = rest.get(from).and_then(|rest| rest.first_difference(parted)) else { continue };
            let step = from + step;
            let reader = &single[step];
            let mut rows: Vec<(Option<Key<'_>>, usize)> =
                part.iter().map(|place| (reader.first_key(&items[*place]), *place)).collect();
            let compare = |(a, of_a): &(Option<Key<'_>>, usize), (b, of_b): &(Option<Key<'_>>, usize)| {
                let both = || reader.compare_unpacked(&items[*of_a], &items[*of_b]);
                self.0[step].compare(a.as_ref(), b.as_ref(), both)
            };
            rows.sort_by(compare);
            let mut end = range.start;
            for same in rows.chunk_by(|a, b| compare(a, b).is_eq()) {
                let begin = end;
                end += same.len();
                if same.len() > 1 {
                    open.push((begin..end, step + 1));
                }
            }
            for (place, (_, sorted)) in part.iter_mut().zip(rows) {
                *place = sorted;
            }
        }
        let mut unsorted: Vec<Option<T>> = items.drain(..).map(Some).collect();
        items.extend(order.into_iter().filter_map(|place| unsorted[place].take()));
    }
}

/// Reads the values at some paths of an order.
struct Reader<'o> {
    steps: &'o [Step],
    paths: Paths,
}

impl<'o> Reader<'o> {
    fn new(steps: &'o [Step]) -> Self {
        Self { steps, paths: Paths::new(steps.iter().map(|step| &step.path)) }
    }

    /// What stands at the paths.
    fn keys<'j>(&self, item: &'j impl Readable) -> Vec<Option<Key<'j>>> {
        if let Some(json) = item.text() {
            return self.keys_in(json);
        }
        if let Some(beside) = item.beside()
            && let Some(keys) = self.steps.iter().map(|step| step.beside(beside)).collect()
        {
            return keys;
        }
        item.with_json(|json| self.keys_in(json).into_iter().map(|key| key.map(Key::kept)).collect())
    }

    /// What stands at the first path.
    fn first_key<'j>(&self, item: &'j impl Readable) -> Option<Key<'j>> {
        let beside = || self.steps.first()?.beside(item.beside()?);
        beside().unwrap_or_else(|| self.keys(item).into_iter().next().flatten())
    }

    fn keys_in<'j>(&self, json: &'j str) -> Vec<Option<Key<'j>>> {
        let found = self.paths.find(json, |_, value| is_text(value));
        found.into_iter().map(|value| value.map(Key::of)).collect()
    }

    /// Compares what stands at the first path of two objects whose keys do not tell enough.
    fn compare_unpacked(&self, one: &impl Readable, other: &impl Readable) -> Ordering {
        one.with_json(|one| {
            other.with_json(|other| {
                let [a, b] = [one, other].map(|json| self.keys_in(json).into_iter().next().flatten());
                a.zip(b).and_then(|(a, b)| a.compare(&b)).unwrap_or(Ordering::Equal)
            })
        })
    }

    /// The first of the paths whose values are not the same in all objects, as far as is known at once.
    fn first_difference<'i, T: Readable + 'i>(
        &self,
        mut items: impl Iterator<Item = &'i T>,
    ) -> Option<usize> {
        if self.steps.len() == 1 {
            return Some(0);
        }
        let first = self.keys(items.next()?);
        let mut nearest = first.len();
        for item in items {
            let is_same = |(a, b): (&Option<Key<'_>>, Option<Key<'_>>)| match (a, b) {
                (Some(a), Some(b)) => a.compare(&b) == Some(Ordering::Equal),
                (a, b) => a.is_none() && b.is_none(),
            };
            let differs = first.iter().take(nearest).zip(self.keys(item)).position(|pair| !is_same(pair));
            nearest = differs.unwrap_or(nearest);
            if nearest == 0 {
                break;
            }
        }
        (nearest < first.len()).then_some(nearest)
    }
}

fn is_text(value: FieldValue<'_>) -> bool {
    matches!(value, FieldValue::Text(_))
}

impl Step {
    /// What stands beside an object, if the path is one of those that do.
    fn beside<'b>(&self, beside: &'b Beside) -> Option<Option<Key<'b>>> {
        let value = beside.get(self.slot?);
        Some(with_value(value, is_text).then(|| Key::of(value)))
    }

    /// `both` compares them where the keys do not tell enough.
    fn compare(&self, a: Option<&Key<'_>>, b: Option<&Key<'_>>, both: impl FnOnce() -> Ordering) -> Ordering {
        match (a, b) {
            (Some(a), Some(b)) => {
                let order = a.compare(b).unwrap_or_else(both);
                if self.descending { order.reverse() } else { order }
            }
            _ => b.is_some().cmp(&a.is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// The names of objects whose `v` has these values, in order. The name is the value.
    fn sorted(order: &str, values: &[&str]) -> Vec<String> {
        let order = Order::parse(order).unwrap();
        let json = |value: &&str| format!(r#"{{"v":{value}}}"#);
        let texts: Vec<String> = values.iter().map(json).collect();
        let mut plain: Vec<&str> = texts.iter().map(String::as_str).collect();
        order.sort(&mut plain);
        let mut unpacked: Vec<Shown<'_>> = texts.iter().map(|json| Shown(json)).collect();
        order.sort(&mut unpacked);
        assert!(plain.iter().zip(&unpacked).all(|(plain, unpacked)| std::ptr::eq(*plain, unpacked.0)));
        plain.into_iter().map(|json| json[5..json.len() - 1].to_owned()).collect()
    }

    /// A text that is only shown, as that of a packed object.
    struct Shown<'j>(&'j str);

    impl Readable for Shown<'_> {
        fn text(&self) -> Option<&str> {
            None
        }

        fn with_json<R>(&self, mut read: impl FnMut(&str) -> R) -> R {
            read(self.0)
        }
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
        order.sort(&mut objects);
        assert_eq!(objects, [x2, x13, x17, x, y, none]);
    }

    /// How often each text is read while texts are sorted.
    fn reads(order: &str, texts: &[String]) -> f64 {
        let reads = Cell::new(0);
        let mut counted: Vec<Counted<'_>> = texts.iter().map(|json| Counted(json, &reads)).collect();
        Order::parse(order).unwrap().sort(&mut counted);
        f64::from(reads.get()) / texts.len() as f64
    }

    /// A text that counts how often it is shown.
    struct Counted<'j>(&'j str, &'j Cell<u32>);

    impl Readable for Counted<'_> {
        fn text(&self) -> Option<&str> {
            None
        }

        fn with_json<R>(&self, mut read: impl FnMut(&str) -> R) -> R {
            self.1.set(self.1.get() + 1);
            read(self.0)
        }
    }

    #[test]
    fn a_path_is_read_of_those_only_that_the_ones_before_it_do_not_tell_apart() {
        let texts: Vec<String> =
            (0..1_000).map(|n| format!(r#"{{"a":{n},"b":{},"l":{}}}"#, n / 2, n / 999)).collect();
        assert!(reads("a,c,d,e,f,g,h,i", &texts) < 1.1, "the first tells all apart");
        assert!(reads("c,d,e,f,g,h,i,j", &texts) < 1.1, "none is there: that is found out in one go");
        assert!(reads("c,d,e,f,g,h,i,l", &texts) < 2.1, "the last decides");
        assert!(reads("b,a", &texts) < 2.1, "each decides for some");
    }

    #[test]
    fn texts_are_compared_by_what_they_say_however_they_are_written() {
        let says = [
            r#""a\\u""#,
            r#""a\u0062""#,
            r#""aba""#,
            r#""ab\"c""#,
            r#""a\u00e9\n""#,
            r#""aé\r""#,
            r#""a\u2603""#,
            r#""a\uffee""#,
            r#""a\ud83d\ude00""#,
            r#""a😀b""#,
        ];
        let mut decoded = says;
        decoded.sort_by_key(|text| serde_json::from_str::<String>(text).unwrap());
        let mut shuffled = says;
        shuffled.reverse();
        shuffled.rotate_left(3);
        assert_eq!(sorted("v", &shuffled), decoded);
        let same = [r#""x\u0041""#, r#""xA""#, r#""\u0078A""#];
        assert_eq!(sorted("v", &same), same, "they say the same");
    }

    #[test]
    fn long_texts_are_in_order_though_only_their_beginning_is_kept() {
        let long = |end: &str| format!("\"{}{end}\"", "é".repeat(KEPT));
        let cut = format!("\"{}\"", "é".repeat(KEPT - 1));
        let ascending =
            [&cut, &long(""), &long(r"\u0061"), &long("a0"), &long("a1"), &long("é"), &long("😀")];
        let ascending = ascending.map(String::as_str);
        let mut shuffled = ascending;
        shuffled.reverse();
        shuffled.rotate_left(3);
        assert_eq!(sorted("v", &shuffled), ascending);
        let same = [long("x"), long(r"\u0078"), long("x")];
        assert_eq!(sorted("-v", &same.each_ref().map(String::as_str)), same, "they say the same");
    }

    #[test]
    fn a_path_that_comes_again_is_not_read_again() {
        assert_eq!(Order::parse("v,-v,w,v,w").unwrap().len(), 2);
        assert_eq!(sorted("v,-v,v", &["3", "1", "2"]), ["1", "2", "3"]);
    }

    #[test]
    fn a_minus_is_part_of_a_name_in_quotes_only() {
        let mut objects = vec![r#"{"-v":2,"v":1}"#, r#"{"-v":1,"v":2}"#];
        Order::parse("['-v']").unwrap().sort(&mut objects);
        assert_eq!(objects, [r#"{"-v":1,"v":2}"#, r#"{"-v":2,"v":1}"#]);
        let error = Order::parse("a,--v[").unwrap_err();
        assert_eq!((error.position, error.expected), (6, "an index, `*` or a field name in quotes"));
    }
}
