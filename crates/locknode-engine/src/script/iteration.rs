//! The loops of Lua: `while`, `repeat` and both kinds of `for`.
//!
//! Each iteration counts as a step, so a loop cannot run longer than the budget allows.

use std::ops::Range;

use crate::script::ast::{Block, Expression, Input};
use crate::script::error::ScriptError;
use crate::script::evaluator::{Evaluator, Flow, as_number};
use crate::script::number;
use crate::script::value::Datum;

impl<'r> Evaluator<'r, '_> {
    pub(super) fn while_loop(
        &mut self,
        condition: &'r Expression,
        body: &'r Block,
    ) -> Result<Flow, ScriptError> {
        while self.value(condition)?.is_true() {
            self.steps(1)?;
            match self.block(body)? {
                Flow::Next => {}
                Flow::Break => break,
                Flow::Return => return Ok(Flow::Return),
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn repeat_loop(
        &mut self,
        body: &'r Block,
        until: &'r Expression,
    ) -> Result<Flow, ScriptError> {
        loop {
            self.steps(1)?;
            match self.block(body)? {
                Flow::Next => {}
                Flow::Break => break,
                Flow::Return => return Ok(Flow::Return),
            }
            if self.value(until)?.is_true() {
                break;
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn count_loop(
        &mut self,
        slot: usize,
        range: &'r [Expression; 3],
        body: &'r Block,
        line: u32,
    ) -> Result<Flow, ScriptError> {
        let mut numbers = [0.0; 3];
        let mut bounds = Vec::with_capacity(3);
        for expression in range {
            bounds.push(self.value(expression)?);
        }
        for ((bound, number), what) in bounds.iter().zip(&mut numbers).zip(RANGE) {
            self.convert(bound)?;
            *number = as_number(bound)
                .ok_or_else(|| ScriptError::lua(line, &format!("'for' {what} must be a number")))?;
        }
        let [mut current, stop, step] = numbers;
        while if step > 0.0 {
            current <= stop
        } else {
            stop <= current
        } {
            self.steps(1)?;
            self.store(self.base + slot, Datum::Number(current));
            match self.block(body)? {
                Flow::Next => {}
                Flow::Break => break,
                Flow::Return => return Ok(Flow::Return),
            }
            current += step;
        }
        Ok(Flow::Next)
    }

    /// `for ... in ipairs(KEYS)`, without creating a table of the keys.
    pub(super) fn each_input(
        &mut self,
        input: Input,
        slots: Range<usize>,
        body: &'r Block,
    ) -> Result<Flow, ScriptError> {
        for index in 1.. {
            let element = self.input_element(input, index);
            if element == Datum::Nil {
                break;
            }
            match self.each_body(index, element, slots.clone(), body)? {
                Flow::Next => {}
                Flow::Break => break,
                Flow::Return => return Ok(Flow::Return),
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn each_element(
        &mut self,
        pairs: bool,
        over: &'r Expression,
        slots: Range<usize>,
        body: &'r Block,
        line: u32,
    ) -> Result<Flow, ScriptError> {
        let list = self.value(over)?;
        let name = if pairs { "pairs" } else { "ipairs" };
        let Datum::Table(id) = list else {
            let got = list.type_name();
            return Err(ScriptError::lua(
                line,
                &format!("bad argument #1 to '{name}' (table expected, got {got})"),
            ));
        };
        if pairs
            && self
                .table(id)
                .is_some_and(|table| table.pairs_length().is_none())
        {
            let what = "pairs over anything but a plain list is not supported on this node";
            return Err(ScriptError::stopped(line, what));
        }
        for index in 1.. {
            let element = self
                .table(id)
                .map_or(Datum::Nil, |table| table.element(index));
            if element == Datum::Nil {
                break;
            }
            match self.each_body(index, element, slots.clone(), body)? {
                Flow::Next => {}
                Flow::Break => break,
                Flow::Return => return Ok(Flow::Return),
            }
        }
        Ok(Flow::Next)
    }

    fn each_body(
        &mut self,
        index: usize,
        element: Datum<'r>,
        mut slots: Range<usize>,
        body: &'r Block,
    ) -> Result<Flow, ScriptError> {
        self.steps(1)?;
        let mut pair = [Datum::Number(number::count(index)), element].into_iter();
        for slot in &mut slots {
            self.store(slot, pair.next().unwrap_or(Datum::Nil));
        }
        self.block(body)
    }
}

/// Lua's names for the three numbers of a `for`.
const RANGE: [&str; 3] = ["initial value", "limit", "step"];
