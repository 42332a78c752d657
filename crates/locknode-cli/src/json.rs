//! JSON for `--json`: objects with fields in the order they are added. Writing only.

use std::fmt::Write as _;

/// A JSON object being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object {
    fields: String,
}

impl Object {
    pub(crate) fn text(self, name: &str, value: &str) -> Self {
        self.raw(name, &quoted(value))
    }

    /// A number from zero on; one that is wider than 64 bits, at their end.
    pub(crate) fn number(self, name: &str, value: impl TryInto<u64>) -> Self {
        let value = value.try_into().unwrap_or(u64::MAX);
        self.raw(name, &value.to_string())
    }

    /// A number with three digits after the point; `null` when it is not finite.
    pub(crate) fn decimal(self, name: &str, value: f64) -> Self {
        if value.is_finite() {
            self.raw(name, &format!("{value:.3}"))
        } else {
            self.raw(name, "null")
        }
    }

    pub(crate) fn object(self, name: &str, value: Self) -> Self {
        self.raw(name, &value.finish())
    }

    pub(crate) fn list(self, name: &str, values: impl IntoIterator<Item = Self>) -> Self {
        let values: Vec<String> = values.into_iter().map(Self::finish).collect();
        self.raw(name, &format!("[{}]", values.join(",")))
    }

    pub(crate) fn texts(self, name: &str, values: &[String]) -> Self {
        let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
        self.raw(name, &format!("[{}]", values.join(",")))
    }

    pub(crate) fn numbers(self, name: &str, values: impl IntoIterator<Item = u64>) -> Self {
        let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
        self.raw(name, &format!("[{}]", values.join(",")))
    }

    pub(crate) fn finish(self) -> String {
        format!("{{{}}}", self.fields)
    }

    fn raw(mut self, name: &str, value: &str) -> Self {
        let comma = if self.fields.is_empty() { "" } else { "," };
        let _ = write!(self.fields, "{comma}{}:{value}", quoted(name));
        self
    }
}

/// Text between quotes, with what is special escaped.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_fields_keep_their_order() {
        let inner = Object::default().number("n", 1);
        let object = Object::default()
            .text("b", "x\"\\\n\u{1b}")
            .object("a", inner);
        assert_eq!(object.finish(), r#"{"b":"x\"\\\u000a\u001b","a":{"n":1}}"#);
        assert_eq!(Object::default().finish(), "{}");
    }
}
