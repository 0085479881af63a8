//! From text to steps.

use serde_json::Value;

use super::{Comparison, Filter, JsonPathError, Operand, Step};

/// What can follow a step.
const STEP: &str = "`.`, `[` or the end";

pub(super) fn parse(input: &str) -> Result<Vec<Step>, JsonPathError> {
    let mut parser = Parser { input, position: 0, in_filter: false };
    parser.skip_blanks();
    parser.take("$");
    let steps = parser.steps()?;
    match parser.rest() {
        _ if steps.is_empty() => Err(parser.expected("`.` or `[`")),
        "" => Ok(steps),
        _ => Err(parser.expected(STEP)),
    }
}

struct Parser<'a> {
    input: &'a str,
    /// Always at the beginning of a character, or at the end.
    position: usize,
    /// A filter does not stand in a filter, and there names end before the signs of a comparison.
    in_filter: bool,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.input.get(self.position..).unwrap_or("")
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.position += text.len();
        }
        found
    }

    /// The next character, if it is one of these.
    fn take_char(&mut self, wanted: impl Fn(char) -> bool) -> Option<char> {
        let next = self.rest().chars().next().filter(|c| wanted(*c))?;
        self.position += next.len_utf8();
        Some(next)
    }

    fn skip_blanks(&mut self) {
        while self.take_char(|c| c == ' ').is_some() {}
    }

    fn expected(&self, expected: &'static str) -> JsonPathError {
        JsonPathError { input: self.input.to_owned(), position: self.position, expected }
    }

    fn expect(&mut self, text: &'static str, expected: &'static str) -> Result<(), JsonPathError> {
        if self.take(text) { Ok(()) } else { Err(self.expected(expected)) }
    }

    /// As many steps as there are.
    fn steps(&mut self) -> Result<Vec<Step>, JsonPathError> {
        let mut steps = Vec::new();
        loop {
            self.skip_blanks();
            if self.rest().starts_with("..") {
                return Err(self.expected("one `.`, since search in depth is not supported,"));
            }
            if self.take("[") {
                self.bracket(&mut steps)?;
            } else if self.take(".") {
                let start = self.position;
                let name = self.name();
                let is_any = self.input.get(start..self.position) == Some("*");
                steps.push(if is_any { Step::Any } else { Step::Field(name) });
            } else {
                return Ok(steps);
            }
        }
    }

    /// A name up to the sign that ends it. It may be empty: there are fields without a name.
    fn name(&mut self) -> String {
        let in_filter = self.in_filter;
        let ends = |c: char| " \t\r\n.,[]$@{}".contains(c) || (in_filter && "=!<>)".contains(c));
        let mut name = String::new();
        while let Some(c) = self.take_char(|c| !ends(c)) {
            match c {
                '\\' => name.extend(self.take_char(|_| true)),
                _ => name.push(c),
            }
        }
        name
    }

    /// What stands behind `[`, with its `]`.
    fn bracket(&mut self, steps: &mut Vec<Step>) -> Result<(), JsonPathError> {
        if self.take("?(") {
            steps.push(Step::Filter(self.filter()?));
        } else if self.take("*") {
            steps.push(Step::Slice { from: None, to: None });
        } else if self.take("\"") {
            steps.push(Step::Field(self.quoted('"')?));
        } else if self.take("'") {
            self.keys(steps)?;
        } else {
            steps.push(self.range()?);
        }
        self.expect("]", "`]`")
    }

    /// Names in single quotes, behind the first quote. A dot that is not escaped is between two of them.
    fn keys(&mut self, steps: &mut Vec<Step>) -> Result<(), JsonPathError> {
        let mut name = String::new();
        loop {
            match self.take_char(|_| true) {
                Some('\\') => name.extend(self.take_char(|_| true)),
                Some('.') => steps.push(Step::Field(std::mem::take(&mut name))),
                Some('\'') => {
                    steps.push(Step::Field(name));
                    return Ok(());
                }
                Some(c) => name.push(c),
                None => return Err(self.expected("`'`")),
            }
        }
    }

    /// A text behind its first quote, up to and with the second.
    fn quoted(&mut self, quote: char) -> Result<String, JsonPathError> {
        let mut text = String::new();
        loop {
            match self.take_char(|_| true) {
                Some('\\') => text.extend(self.take_char(|_| true)),
                Some(c) if c == quote => return Ok(text),
                Some(c) => text.push(c),
                None => return Err(self.expected("the second quote")),
            }
        }
    }

    /// An index or a slice.
    fn range(&mut self) -> Result<Step, JsonPathError> {
        let expected = "`*`, `?(`, a name in quotes, an index or a slice";
        let from = self.index()?;
        if self.take(":") {
            return Ok(Step::Slice { from, to: self.index()? });
        }
        from.map(Step::Element).ok_or_else(|| self.expected(expected))
    }

    fn index(&mut self) -> Result<Option<i64>, JsonPathError> {
        let start = self.position;
        self.take("-");
        while self.take_char(|c| c.is_ascii_digit()).is_some() {}
        match self.input.get(start..self.position).unwrap_or("") {
            "" => Ok(None),
            digits => digits.parse().map(Some).map_err(|_| {
                self.position = start;
                self.expected("an index of at most 64 bits")
            }),
        }
    }

    /// What stands behind `?(`, with its `)`.
    fn filter(&mut self) -> Result<Filter, JsonPathError> {
        if self.in_filter {
            return Err(self.expected("no filter inside a filter"));
        }
        self.in_filter = true;
        let left = self.operand()?;
        self.skip_blanks();
        let signs = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            ("<", Comparison::Less),
            (">=", Comparison::GreaterOrEqual),
            (">", Comparison::Greater),
        ];
        let comparison = match signs.into_iter().find(|(sign, _)| self.take(sign)) {
            Some((_, comparison)) => Some((comparison, self.operand()?)),
            None => None,
        };
        self.skip_blanks();
        self.expect(")", "`==`, `!=`, `<`, `<=`, `>`, `>=` or `)`")?;
        self.in_filter = false;
        Ok(Filter { left, comparison })
    }

    fn operand(&mut self) -> Result<Operand, JsonPathError> {
        self.skip_blanks();
        if let Some(quote) = self.take_char(|c| c == '"' || c == '\'') {
            return Ok(Operand::Literal(self.quoted(quote)?.into()));
        }
        if self.take_char(|c| c == '@' || c == '$').is_some() || self.rest().starts_with(['.', '[']) {
            return Ok(Operand::Path(self.steps()?));
        }
        let start = self.position;
        while self.take_char(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')).is_some() {}
        let word = self.input.get(start..self.position).unwrap_or("");
        literal(word).map(Operand::Literal).ok_or_else(|| {
            self.position = start;
            self.expected("`@`, a text in quotes, a number, `true` or `false`")
        })
    }
}

fn literal(word: &str) -> Option<Value> {
    match word {
        "true" => Some(true.into()),
        "false" => Some(false.into()),
        _ if !word.ends_with(|c: char| c.is_ascii_digit() || c == '.') => None,
        _ => word.parse::<i64>().map(Value::from).ok().or_else(|| word.parse::<f64>().map(Value::from).ok()),
    }
}
