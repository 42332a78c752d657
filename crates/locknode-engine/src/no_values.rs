//! A build in which keys hold tokens and nothing else.

/// A value, which no key of this build has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {}

/// No values.
#[derive(Debug, Default)]
pub(crate) struct Values {}

impl Value {
    pub(crate) const fn type_name(&self) -> &'static str {
        match *self {}
    }

    pub(crate) const fn bytes(&self) -> usize {
        match *self {}
    }

    pub(crate) const fn encode(&self) -> Vec<u8> {
        match *self {}
    }
}

#[expect(clippy::unused_self, reason = "the table with values needs itself")]
impl Values {
    pub(crate) const fn store(&mut self, value: Value) -> u32 {
        match value {}
    }

    pub(crate) const fn get(&self, _: u32) -> Option<&Value> {
        None
    }

    pub(crate) const fn free(&mut self, _: u32) {}

    pub(crate) const fn bytes(&self) -> u64 {
        0
    }
}

/// Reads a value from a record; this build has none.
pub(crate) const fn decode(_: &[u8]) -> Option<Value> {
    None
}
