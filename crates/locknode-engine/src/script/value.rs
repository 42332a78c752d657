//! Values at run time, and tables.
//!
//! Strings are borrowed from the script, its keys or its arguments wherever possible; only what the
//! script builds or reads from the keyspace is owned. Tables live in a list of the evaluator, and a
//! value holds an index into it: cycles cost nothing, and dropping deeply nested tables cannot
//! overflow the stack.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::script::builtin::Builtin;

/// A Lua value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Datum<'r> {
    Nil,
    Boolean(bool),
    Number(f64),
    Text(Text<'r>),
    Table(TableId),
    Builtin(Builtin),
}

/// The index of a table in the evaluator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TableId(pub(super) usize);

/// A Lua string: any bytes.
#[derive(Debug, Clone)]
pub(super) enum Text<'r> {
    Borrowed(&'r [u8]),
    Owned(Rc<[u8]>),
}

impl Text<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Text<'_> {}

impl PartialOrd for Text<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl Datum<'_> {
    pub(super) fn owned(bytes: &[u8]) -> Self {
        Self::Text(Text::Owned(Rc::from(bytes)))
    }

    /// Returns the length of a string; other values have none.
    pub(super) fn text_len(&self) -> usize {
        match self {
            Self::Text(text) => text.bytes().len(),
            _ => 0,
        }
    }

    pub(super) fn is_true(&self) -> bool {
        !matches!(self, Self::Nil | Self::Boolean(false))
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Boolean(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::Table(_) => "table",
            Self::Builtin(_) => "function",
        }
    }
}

/// A Lua table: a list from 1 on, and everything else by key.
#[derive(Debug, Default)]
pub(super) struct Table<'r> {
    /// Elements 1, 2, 3 and so on. The last one is never nil; others are nil once removed.
    list: Vec<Datum<'r>>,
    fields: BTreeMap<Key<'r>, Datum<'r>>,
    /// How many elements of `list` are nil.
    holes: usize,
    /// Whether elements were added in an order other than 1, 2, 3. Lua then lists them in an order
    /// of its own, which is not imitated.
    irregular: bool,
}

/// A key that is not an index of the list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key<'r> {
    Boolean(bool),
    /// The bits of a number. Zero has one form, and NaN is not a key.
    Number(u64),
    Text(Text<'r>),
    Table(TableId),
    Builtin(Builtin),
}

impl<'r> Table<'r> {
    pub(super) fn from_list(list: Vec<Datum<'r>>) -> Self {
        let mut table = Self::default();
        table.extend(list);
        table
    }

    /// Appends the values of a constructor or a reply, some of which may be nil.
    pub(super) fn extend(&mut self, values: Vec<Datum<'r>>) {
        self.holes += values.iter().filter(|value| **value == Datum::Nil).count();
        self.list.extend(values);
        self.trim();
    }

    /// The element at `index`, counted from 1.
    pub(super) fn element(&self, index: usize) -> Datum<'r> {
        match index.checked_sub(1).and_then(|at| self.list.get(at)) {
            Some(element) => element.clone(),
            None if self.irregular => self.field(&element_key(index)),
            None => Datum::Nil,
        }
    }

    pub(super) fn field(&self, key: &Key<'r>) -> Datum<'r> {
        self.fields.get(key).cloned().unwrap_or(Datum::Nil)
    }

    /// Returns the text under a name, for `ok` and `err`.
    pub(super) fn named_text(&self, name: &'static [u8]) -> Option<Text<'r>> {
        match self.fields.get(&Key::Text(Text::Borrowed(name))) {
            Some(Datum::Text(text)) => Some(text.clone()),
            _ => None,
        }
    }

    pub(super) fn set_field(&mut self, key: Key<'r>, value: Datum<'r>) {
        if value == Datum::Nil {
            self.fields.remove(&key);
        } else {
            self.fields.insert(key, value);
        }
    }

    /// Sets the element at `index`, counted from 1.
    pub(super) fn set_element(&mut self, index: usize, value: Datum<'r>) {
        let Some(at) = index.checked_sub(1) else {
            return;
        };
        if let Some(place) = self.list.get_mut(at) {
            self.holes -= usize::from(*place == Datum::Nil);
            self.holes += usize::from(value == Datum::Nil);
            *place = value;
            self.trim();
            return;
        }
        if at > self.list.len() || value == Datum::Nil {
            self.irregular |= value != Datum::Nil;
            self.set_field(element_key(index), value);
            return;
        }
        self.list.push(value);
        // Elements that were added too early now continue the list.
        while self.irregular {
            let Some(next) = self.fields.remove(&element_key(self.list.len() + 1)) else {
                break;
            };
            self.list.push(next);
        }
    }

    /// Returns the length, or `None` when Lua would choose one of several.
    pub(super) fn length(&self) -> Option<usize> {
        let first = Key::Number(1.0_f64.to_bits());
        let end = Key::Number(f64::INFINITY.to_bits());
        let apart = self.irregular && self.fields.range(first..end).next().is_some();
        (self.holes == 0 && !apart).then_some(self.list.len())
    }

    /// Returns whether the list part was never used.
    pub(super) fn is_listless(&self) -> bool {
        self.list.is_empty() && !self.irregular
    }

    /// Returns the list, if `pairs` visits exactly it in order.
    pub(super) fn pairs_length(&self) -> Option<usize> {
        (self.holes == 0 && !self.irregular && self.fields.is_empty()).then_some(self.list.len())
    }

    /// Shifts the elements from `index` on by one and inserts `value` there.
    pub(super) fn insert(&mut self, index: usize, value: Datum<'r>) {
        match index.checked_sub(1) {
            Some(at) if at < self.list.len() => {
                self.holes += usize::from(value == Datum::Nil);
                self.list.insert(at, value);
            }
            _ => self.set_element(index, value),
        }
    }

    /// Restores the rule that the last element is not nil.
    fn trim(&mut self) {
        while self.list.last() == Some(&Datum::Nil) {
            self.list.pop();
            self.holes -= 1;
        }
    }
}

/// The key of a list element that is not in the list yet.
fn element_key<'r>(index: usize) -> Key<'r> {
    Key::Number(crate::script::number::count(index).to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(values: &[Option<f64>]) -> Table<'static> {
        Table::from_list(
            values
                .iter()
                .map(|value| value.map_or(Datum::Nil, Datum::Number))
                .collect(),
        )
    }

    #[test]
    fn elements_that_come_early_join_the_list_later() {
        let mut table = table(&[Some(1.0)]);
        table.set_element(3, Datum::Number(3.0));
        assert_eq!(table.length(), None);
        assert_eq!(table.element(3), Datum::Number(3.0));
        table.set_element(2, Datum::Number(2.0));
        assert_eq!(table.length(), Some(3));
        assert_eq!(table.element(3), Datum::Number(3.0));
        assert_eq!(table.pairs_length(), None);
    }

    #[test]
    fn removing_the_last_element_shortens_the_list() {
        let mut table = table(&[Some(1.0), Some(2.0)]);
        table.set_element(2, Datum::Nil);
        assert_eq!(table.length(), Some(1));
        table.set_element(1, Datum::Nil);
        assert_eq!(table.length(), Some(0));
    }

    #[test]
    fn a_list_with_a_hole_has_no_single_length() {
        let mut table = table(&[Some(1.0), None, Some(3.0)]);
        assert_eq!(table.length(), None);
        table.set_element(2, Datum::Number(2.0));
        assert_eq!(table.length(), Some(3));
    }
}
