//! The operators of Lua 5.1: indexing, arithmetic, comparison, concatenation and length.
//!
//! Errors have Lua's text, including how it names the faulty value.

use crate::script::ast::{Binary, Expression, Index, Input, Operator};
use crate::script::error::ScriptError;
use crate::script::evaluator::{Evaluator, as_number, field_key};
use crate::script::number;
use crate::script::value::Datum;

type Outcome<'r> = Result<Datum<'r>, ScriptError>;

impl<'r> Evaluator<'r, '_> {
    /// Evaluates `not`, `-`, `#` or an operator with two operands.
    pub(super) fn operation(&mut self, expression: &'r Expression) -> Outcome<'r> {
        match expression {
            Expression::Not(inner) => Ok(Datum::Boolean(!self.value(inner)?.is_true())),
            Expression::Negate(inner, line) => {
                let value = self.value(inner)?;
                self.convert(&value)?;
                match as_number(&value) {
                    Some(number) => Ok(Datum::Number(-number)),
                    None => Err(self.misuse("perform arithmetic on", &value, inner, *line)),
                }
            }
            Expression::Length(inner, line) => self.length(inner, *line),
            Expression::Binary(binary) => self.binary(binary),
            _ => Ok(Datum::Nil),
        }
    }

    pub(super) fn index(&mut self, index: &'r Index) -> Outcome<'r> {
        if let Expression::Input(input) = index.base {
            let key = self.value(&index.key)?;
            if let Datum::Number(key) = key {
                return Ok(
                    number::index(key).map_or(Datum::Nil, |key| self.input_element(input, key))
                );
            }
        }
        let base = self.value(&index.base)?;
        let key = self.value(&index.key)?;
        self.look_up(&key)?;
        match base {
            Datum::Table(id) => {
                let Some(table) = self.table(id) else {
                    return Ok(Datum::Nil);
                };
                if let Datum::Number(at) = key
                    && let Some(at) = number::index(at)
                {
                    let element = table.element(at);
                    if element != Datum::Nil {
                        return Ok(element);
                    }
                }
                Ok(field_key(key).map_or(Datum::Nil, |key| table.field(&key)))
            }
            // String methods are not native, and any other key finds nothing.
            Datum::Text(_) => {
                if matches!(key, Datum::Text(_)) {
                    let what = "string methods are not supported on this node";
                    return Err(ScriptError::stopped(index.line, what));
                }
                Ok(Datum::Nil)
            }
            other => Err(self.misuse("index", &other, &index.base, index.line)),
        }
    }

    fn length(&mut self, inner: &'r Expression, line: u32) -> Outcome<'r> {
        if let Expression::Input(input) = inner
            && let Some(count) = self.input_count(*input)
        {
            return Ok(Datum::Number(number::count(count)));
        }
        let value = self.value(inner)?;
        match &value {
            Datum::Text(text) => Ok(Datum::Number(number::count(text.bytes().len()))),
            Datum::Table(id) => {
                let length = self.table(*id).map_or(Some(0), |table| table.length());
                let length = length.ok_or_else(|| holes(line))?;
                Ok(Datum::Number(number::count(length)))
            }
            _ => Err(self.misuse("get length of", &value, inner, line)),
        }
    }

    fn binary(&mut self, binary: &'r Binary) -> Outcome<'r> {
        let left = self.value(&binary.left)?;
        let right = self.value(&binary.right)?;
        if let (Datum::Text(left), Datum::Text(right)) = (&left, &right) {
            self.work(left.bytes().len().min(right.bytes().len()))?;
        }
        let truth = match binary.operator {
            Operator::Equal => left == right,
            Operator::NotEqual => left != right,
            Operator::Less => less(&left, &right, binary.line)?,
            Operator::Greater => less(&right, &left, binary.line)?,
            Operator::LessOrEqual => less_or_equal(&left, &right, binary.line)?,
            Operator::GreaterOrEqual => less_or_equal(&right, &left, binary.line)?,
            Operator::Concatenate => return self.concatenate(&left, &right, binary),
            operator => return self.arithmetic(operator, &left, &right, binary),
        };
        Ok(Datum::Boolean(truth))
    }

    fn arithmetic(
        &mut self,
        operator: Operator,
        left: &Datum<'r>,
        right: &Datum<'r>,
        binary: &'r Binary,
    ) -> Outcome<'r> {
        for side in [left, right] {
            if let Datum::Text(_) = side {
                self.convert(side)?;
            }
        }
        let (Some(a), Some(b)) = (as_number(left), as_number(right)) else {
            // Lua blames the right operand only when the left one is a number.
            let (value, side) = if as_number(left).is_some() {
                (right, &binary.right)
            } else {
                (left, &binary.left)
            };
            return Err(self.misuse("perform arithmetic on", value, side, binary.line));
        };
        let result = match operator {
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a * b,
            Operator::Divide => a / b,
            Operator::Modulo => a - (a / b).floor() * b,
            _ => a.powf(b),
        };
        let undefined = result.is_nan() && !a.is_nan() && !b.is_nan();
        Ok(Datum::Number(if undefined {
            number::undefined()
        } else {
            result
        }))
    }

    fn concatenate(
        &mut self,
        left: &Datum<'r>,
        right: &Datum<'r>,
        binary: &'r Binary,
    ) -> Outcome<'r> {
        let joinable = |datum: &Datum<'r>| matches!(datum, Datum::Text(_) | Datum::Number(_));
        if !joinable(left) || !joinable(right) {
            let (value, side) = if joinable(left) {
                (right, &binary.right)
            } else {
                (left, &binary.left)
            };
            return Err(self.misuse("concatenate", value, side, binary.line));
        }
        self.convert(left)?;
        self.convert(right)?;
        let mut text = Vec::new();
        append_text(&mut text, left);
        append_text(&mut text, right);
        self.spend(text.len())?;
        Ok(Datum::owned(&text))
    }

    /// Lua's error for a value of the wrong type, which names the variable it came from.
    pub(super) fn misuse(
        &self,
        what: &str,
        value: &Datum<'_>,
        from: &Expression,
        line: u32,
    ) -> ScriptError {
        let kind = value.type_name();
        let named = match from {
            Expression::Local { name, .. } => Some(("local", self.name(*name))),
            Expression::Outer { name, .. } => Some(("upvalue", self.name(*name))),
            Expression::Input(Input::Keys) => Some(("global", "KEYS".to_owned())),
            Expression::Input(Input::Args) => Some(("global", "ARGV".to_owned())),
            Expression::Index(index) => Some(match &index.key {
                Expression::Text(key) => ("field", String::from_utf8_lossy(key).into_owned()),
                _ => ("field", "?".to_owned()),
            }),
            _ => None,
        };
        let text = match named {
            Some((sort, name)) => format!("attempt to {what} {sort} '{name}' (a {kind} value)"),
            None => format!("attempt to {what} a {kind} value"),
        };
        ScriptError::lua(line, &text)
    }
}

/// Appends a string, or a number as Lua displays it. Other values have no text.
pub(super) fn append_text(text: &mut Vec<u8>, datum: &Datum<'_>) {
    match datum {
        Datum::Text(bytes) => text.extend_from_slice(bytes.bytes()),
        Datum::Number(value) => text.extend_from_slice(&number::display(*value)),
        _ => {}
    }
}

/// The error for a list whose length Lua does not define.
pub(super) fn holes(line: u32) -> ScriptError {
    ScriptError::stopped(
        line,
        "the length of a list with nil inside is not supported on this node",
    )
}

fn less(left: &Datum<'_>, right: &Datum<'_>, line: u32) -> Result<bool, ScriptError> {
    match (left, right) {
        (Datum::Number(left), Datum::Number(right)) => Ok(left < right),
        (Datum::Text(left), Datum::Text(right)) => Ok(left < right),
        _ => Err(incomparable(left, right, line)),
    }
}

fn less_or_equal(left: &Datum<'_>, right: &Datum<'_>, line: u32) -> Result<bool, ScriptError> {
    match (left, right) {
        (Datum::Number(left), Datum::Number(right)) => Ok(left <= right),
        (Datum::Text(left), Datum::Text(right)) => Ok(left <= right),
        _ => Err(incomparable(left, right, line)),
    }
}

fn incomparable(left: &Datum<'_>, right: &Datum<'_>, line: u32) -> ScriptError {
    let (left, right) = (left.type_name(), right.type_name());
    let text = if left == right {
        format!("attempt to compare two {left} values")
    } else {
        format!("attempt to compare {left} with {right}")
    };
    ScriptError::lua(line, &text)
}
