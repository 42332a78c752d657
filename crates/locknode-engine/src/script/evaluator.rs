//! Runs a script that has no hot shape: statements, frames and the budget.
//!
//! A tree walker. `operator.rs` implements operators, `stdlib.rs` library functions. Exceeding the
//! budget of steps, memory or depth stops a script with an error, so that one client's script
//! cannot hold up the node. The limits are far above what any known lock script needs.

use crate::script::Caller;
use crate::script::Value;
use crate::script::ast::{Block, Call, Callee, Chunk, Expression, Input, Item, Statement, Target};
use crate::script::budget::{Budget, FIELD_WORK, NUMBER_STEPS};
use crate::script::error::ScriptError;
use crate::script::number;
use crate::script::reply::{self, REPLY_DEPTH_MAX, Unencodable};
use crate::script::value::{Datum, Key, Table, TableId, Text};

/// Runs `chunk` once.
///
/// # Errors
/// The script raised an error or used up its budget.
pub(super) fn run(
    chunk: &Chunk,
    keys: &[&[u8]],
    args: &[&[u8]],
    read_only: bool,
    caller: &mut dyn Caller,
) -> Result<Value, ScriptError> {
    let mut evaluator = Evaluator {
        chunk,
        keys,
        args,
        caller,
        read_only,
        stack: vec![Datum::Nil; chunk.frame],
        base: 0,
        tables: Vec::new(),
        inputs: [None, None],
        returned: Vec::new(),
        budget: Budget::default(),
        line: 1,
    };
    let result = evaluator.result();
    evaluator.caller.note_steps(evaluator.budget.steps_taken());
    result
}

/// What happens after a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Break,
    Return,
}

/// One run of a script. `'r` is the lifetime of the run, for which script, keys and arguments are
/// borrowed.
pub(super) struct Evaluator<'r, 'c> {
    chunk: &'r Chunk,
    keys: &'r [&'r [u8]],
    args: &'r [&'r [u8]],
    pub(super) caller: &'c mut dyn Caller,
    /// Whether write commands are refused.
    pub(super) read_only: bool,
    /// The frames of the running functions, the main chunk's first.
    stack: Vec<Datum<'r>>,
    /// Where the frame of the running function begins.
    pub(super) base: usize,
    pub(super) tables: Vec<Table<'r>>,
    /// `KEYS` and `ARGV` as tables, once the script uses them as such.
    inputs: [Option<TableId>; 2],
    returned: Vec<Datum<'r>>,
    budget: Budget,
    /// The line of the latest call, for errors without one of their own.
    pub(super) line: u32,
}

/// The result of an operation without a value.
pub(super) type Done = Result<(), ScriptError>;

impl<'r> Evaluator<'r, '_> {
    fn result(&mut self) -> Result<Value, ScriptError> {
        self.block(&self.chunk.body)?;
        let first = self.returned.first().cloned().unwrap_or(Datum::Nil);
        let budget = self.budget.bytes_left();
        reply::encode(&first, &self.tables, REPLY_DEPTH_MAX, budget).map_err(|what| match what {
            Unencodable::Large => ScriptError::stopped(self.line, "its reply is too large"),
            Unencodable::Deep => {
                ScriptError::new(b"ERR reached lua stack limit".to_vec(), self.line)
            }
        })
    }

    pub(super) fn block(&mut self, block: &'r Block) -> Result<Flow, ScriptError> {
        self.enter()?;
        let mut flow = Flow::Next;
        for statement in block {
            self.steps(1)?;
            flow = self.statement(statement)?;
            if flow != Flow::Next {
                break;
            }
        }
        self.budget.leave();
        Ok(flow)
    }

    fn statement(&mut self, statement: &'r Statement) -> Result<Flow, ScriptError> {
        match statement {
            Statement::Local {
                slot,
                count,
                values,
            } => self.local(*slot, *count, values)?,
            Statement::Function => {}
            Statement::Assign {
                targets,
                values,
                line,
            } => self.assign(targets, values, *line)?,
            Statement::Call(call) => {
                self.call(call)?;
            }
            Statement::Do(body) => return self.block(body),
            Statement::If { arms, otherwise } => {
                for (condition, body) in arms {
                    if self.value(condition)?.is_true() {
                        return self.block(body);
                    }
                }
                if let Some(body) = otherwise {
                    return self.block(body);
                }
            }
            Statement::While { condition, body } => return self.while_loop(condition, body),
            Statement::Repeat { body, until } => return self.repeat_loop(body, until),
            Statement::Count {
                slot,
                range,
                body,
                line,
            } => {
                return self.count_loop(*slot, range, body, *line);
            }
            Statement::Each {
                pairs,
                over,
                slot,
                count,
                body,
                line,
            } => {
                let slots = self.base + *slot..self.base + *slot + *count;
                return if let (Expression::Input(input), false) = (over, *pairs) {
                    self.each_input(*input, slots, body)
                } else {
                    self.each_element(*pairs, over, slots, body, *line)
                };
            }
            Statement::Return(values) => {
                self.returned = self.values(values)?;
                return Ok(Flow::Return);
            }
            Statement::Break => return Ok(Flow::Break),
        }
        Ok(Flow::Next)
    }

    fn local(&mut self, slot: usize, count: usize, values: &'r [Expression]) -> Done {
        let first = self.base + slot;
        if let (1, [value]) = (count, values) {
            let value = self.value(value)?;
            self.store(first, value);
            return Ok(());
        }
        let mut values = self.values(values)?;
        values.resize(count, Datum::Nil);
        for (offset, value) in values.into_iter().enumerate() {
            self.store(first + offset, value);
        }
        Ok(())
    }

    fn assign(&mut self, targets: &'r [Target], values: &'r [Expression], line: u32) -> Done {
        // Lua evaluates the left side before it assigns anything.
        let mut places = Vec::with_capacity(targets.len());
        for target in targets {
            places.push(match target {
                Target::Index { base, key, line } => {
                    let base = (self.value(base)?, base);
                    Some((base, self.value(key)?, *line))
                }
                _ => None,
            });
        }
        let mut values = self.values(values)?;
        values.resize(targets.len(), Datum::Nil);
        // Lua assigns from right to left.
        for ((target, place), value) in targets.iter().zip(places).zip(values).rev() {
            match (target, place) {
                (Target::Local(slot), _) => self.store(self.base + slot, value),
                (Target::Outer(slot), _) => self.store(*slot, value),
                (Target::Global, _) => {
                    return Err(ScriptError::lua(line, "Attempt to modify a readonly table"));
                }
                (Target::Index { .. }, Some(((base, expression), key, line))) => {
                    let Datum::Table(table) = base else {
                        return Err(self.misuse("index", &base, expression, line));
                    };
                    self.set_index(table, key, value, line)?;
                }
                (Target::Index { .. }, None) => {}
            }
        }
        Ok(())
    }

    /// Evaluates a list of expressions, of which the last may stand for several values.
    pub(super) fn values(
        &mut self,
        expressions: &'r [Expression],
    ) -> Result<Vec<Datum<'r>>, ScriptError> {
        self.steps(expressions.len())?;
        let mut values = Vec::with_capacity(expressions.len());
        let Some((last, others)) = expressions.split_last() else {
            return Ok(values);
        };
        for expression in others {
            values.push(self.value(expression)?);
        }
        match last {
            Expression::Call(call) => values.extend(self.call(call)?),
            other => values.push(self.value(other)?),
        }
        Ok(values)
    }

    /// Evaluates an expression to exactly one value.
    pub(super) fn value(&mut self, expression: &'r Expression) -> Result<Datum<'r>, ScriptError> {
        match expression {
            Expression::Nil => Ok(Datum::Nil),
            Expression::True => Ok(Datum::Boolean(true)),
            Expression::False => Ok(Datum::Boolean(false)),
            Expression::Number(value) => Ok(Datum::Number(*value)),
            Expression::Text(text) => Ok(Datum::Text(Text::Borrowed(text))),
            Expression::Local { slot, .. } => Ok(self.load(self.base + slot)),
            Expression::Outer { slot, .. } => Ok(self.load(*slot)),
            Expression::Builtin(builtin) => Ok(Datum::Builtin(*builtin)),
            Expression::Input(input) => Ok(Datum::Table(self.input_table(*input)?)),
            other => self.nested(other),
        }
    }

    /// Evaluates an expression that contains others, one level deeper.
    fn nested(&mut self, expression: &'r Expression) -> Result<Datum<'r>, ScriptError> {
        self.steps(1)?;
        self.enter()?;
        let value = match expression {
            Expression::Missing { name, line } => Err(ScriptError::lua(
                *line,
                &format!(
                    "Script attempted to access nonexistent global variable '{}'",
                    self.name(*name)
                ),
            )),
            Expression::Index(index) => self.index(index),
            Expression::Call(call) => self
                .call(call)
                .map(|values| values.into_iter().next().unwrap_or(Datum::Nil)),
            Expression::First(inner) => self.value(inner),
            Expression::And(left, right) => match self.value(left) {
                Ok(left) if left.is_true() => self.value(right),
                other => other,
            },
            Expression::Or(left, right) => match self.value(left) {
                Ok(left) if !left.is_true() => self.value(right),
                other => other,
            },
            Expression::Table(items, line) => self.constructor(items, *line),
            other => self.operation(other),
        };
        self.budget.leave();
        value
    }

    fn constructor(&mut self, items: &'r [Item], line: u32) -> Result<Datum<'r>, ScriptError> {
        self.steps(items.len())?;
        let id = self.add_table(Table::default())?;
        let mut list = Vec::new();
        for (at, item) in items.iter().enumerate() {
            match item {
                Item::Keyed(key, value) => {
                    let key = self.value(key)?;
                    let value = self.value(value)?;
                    self.set_index(id, key, value, line)?;
                }
                Item::Next(Expression::Call(call)) if at + 1 == items.len() => {
                    list.extend(self.call(call)?);
                }
                Item::Next(value) => list.push(self.value(value)?),
            }
        }
        self.spend(list.len() * size_of::<Datum<'_>>())?;
        if list.is_empty() {
            return Ok(Datum::Table(id));
        }
        if !self.table(id).is_some_and(Table::is_listless) {
            let what = "a list with both numbered and plain elements is not supported on this node";
            return Err(ScriptError::stopped(line, what));
        }
        if let Some(table) = self.tables.get_mut(id.0) {
            table.extend(list);
        }
        Ok(Datum::Table(id))
    }

    /// Calls a function and returns all of its values.
    fn call(&mut self, call: &'r Call) -> Result<Vec<Datum<'r>>, ScriptError> {
        match &call.callee {
            Callee::Builtin(builtin) => {
                let arguments = self.values(&call.arguments)?;
                self.line = call.line;
                self.library(*builtin, arguments, call.line)
            }
            Callee::Function(index) => {
                let arguments = self.values(&call.arguments)?;
                self.enter()?;
                let values = self.function(*index, arguments, call.line);
                self.budget.leave();
                values
            }
            Callee::Value(expression) => {
                let callee = self.value(expression)?;
                let arguments = self.values(&call.arguments)?;
                let Datum::Builtin(builtin) = callee else {
                    return Err(self.misuse("call", &callee, expression, call.line));
                };
                self.line = call.line;
                self.library(builtin, arguments, call.line)
            }
        }
    }

    fn function(
        &mut self,
        index: usize,
        mut arguments: Vec<Datum<'r>>,
        line: u32,
    ) -> Result<Vec<Datum<'r>>, ScriptError> {
        self.steps(1)?;
        let chunk = self.chunk;
        let Some(function) = chunk.functions.get(index) else {
            return Ok(Vec::new());
        };
        if self.stack.len() + function.frame > STACK_SLOTS_MAX {
            return Err(ScriptError::lua(line, "stack overflow"));
        }
        arguments.truncate(function.parameters);
        let caller_base = std::mem::replace(&mut self.base, self.stack.len());
        self.stack.extend(arguments);
        self.stack.resize(self.base + function.frame, Datum::Nil);
        let flow = self.block(&function.body);
        self.stack.truncate(self.base);
        self.base = caller_base;
        let returned = std::mem::take(&mut self.returned);
        Ok(if flow? == Flow::Return {
            returned
        } else {
            Vec::new()
        })
    }

    fn load(&self, slot: usize) -> Datum<'r> {
        self.stack.get(slot).cloned().unwrap_or(Datum::Nil)
    }

    pub(super) fn store(&mut self, slot: usize, value: Datum<'r>) {
        debug_assert!(
            slot < self.stack.len(),
            "the parser counted the slots of each frame"
        );
        if let Some(place) = self.stack.get_mut(slot) {
            *place = value;
        }
    }

    pub(super) fn name(&self, name: usize) -> String {
        let name = self.chunk.names.get(name).map_or(&b"?"[..], |name| name);
        String::from_utf8_lossy(name).into_owned()
    }

    /// Returns an element of `KEYS` or `ARGV`.
    pub(super) fn input_element(&self, input: Input, index: usize) -> Datum<'r> {
        let (list, table) = match input {
            Input::Keys => (self.keys, self.inputs[0]),
            Input::Args => (self.args, self.inputs[1]),
        };
        if let Some(id) = table {
            return self
                .table(id)
                .map_or(Datum::Nil, |table| table.element(index));
        }
        let element = index.checked_sub(1).and_then(|at| list.get(at));
        element.map_or(Datum::Nil, |bytes| Datum::Text(Text::Borrowed(bytes)))
    }

    /// Returns the length of `KEYS` or `ARGV`, as long as it is not a table.
    pub(super) fn input_count(&self, input: Input) -> Option<usize> {
        match input {
            Input::Keys => self.inputs[0].is_none().then_some(self.keys.len()),
            Input::Args => self.inputs[1].is_none().then_some(self.args.len()),
        }
    }

    fn input_table(&mut self, input: Input) -> Result<TableId, ScriptError> {
        let (list, at) = match input {
            Input::Keys => (self.keys, 0),
            Input::Args => (self.args, 1),
        };
        if let Some(id) = self.inputs[at] {
            return Ok(id);
        }
        let list: Vec<_> = list
            .iter()
            .map(|bytes| Datum::Text(Text::Borrowed(bytes)))
            .collect();
        self.spend(list.len() * size_of::<Datum<'_>>())?;
        let id = self.add_table(Table::from_list(list))?;
        self.inputs[at] = Some(id);
        Ok(id)
    }

    pub(super) fn table(&self, id: TableId) -> Option<&Table<'r>> {
        self.tables.get(id.0)
    }

    pub(super) fn add_table(&mut self, table: Table<'r>) -> Result<TableId, ScriptError> {
        self.spend(size_of::<Table<'_>>())?;
        self.tables.push(table);
        Ok(TableId(self.tables.len() - 1))
    }

    /// Counts steps.
    pub(super) fn steps(&mut self, count: usize) -> Done {
        self.budget
            .steps(count)
            .map_err(|why| ScriptError::stopped(self.line, &why))
    }

    /// Counts reading bytes.
    pub(super) fn work(&mut self, bytes: usize) -> Done {
        self.budget
            .work(bytes)
            .map_err(|why| ScriptError::stopped(self.line, &why))
    }

    /// Counts parsing a value as a number, or formatting it.
    pub(super) fn convert(&mut self, datum: &Datum<'_>) -> Done {
        match datum {
            Datum::Text(text) => self.work(text.bytes().len()),
            Datum::Number(_) => self.steps(NUMBER_STEPS),
            _ => Ok(()),
        }
    }

    /// Counts finding a field of a table.
    pub(super) fn look_up(&mut self, key: &Datum<'_>) -> Done {
        match key {
            Datum::Text(text) => self.work(text.bytes().len().saturating_mul(FIELD_WORK)),
            _ => Ok(()),
        }
    }

    /// Counts memory, which is not returned before the script ends.
    pub(super) fn spend(&mut self, bytes: usize) -> Done {
        self.budget
            .spend(bytes)
            .map_err(|why| ScriptError::stopped(self.line, &why))
    }

    /// Goes one level deeper.
    fn enter(&mut self) -> Done {
        self.budget
            .enter()
            .map_err(|text| ScriptError::lua(self.line, text))
    }

    pub(super) fn set_index(
        &mut self,
        id: TableId,
        key: Datum<'r>,
        value: Datum<'r>,
        line: u32,
    ) -> Done {
        self.spend(FIELD_BYTES)?;
        self.look_up(&key)?;
        let Some(table) = self.tables.get_mut(id.0) else {
            return Ok(());
        };
        match key {
            Datum::Nil => return Err(ScriptError::lua(line, "table index is nil")),
            Datum::Number(index) if index.is_nan() => {
                return Err(ScriptError::lua(line, "table index is NaN"));
            }
            Datum::Number(index) => match number::index(index) {
                Some(index) => table.set_element(index, value),
                None => table.set_field(number_key(index), value),
            },
            other => {
                if let Some(key) = field_key(other) {
                    table.set_field(key, value);
                }
            }
        }
        Ok(())
    }
}

/// Converts a value to a number, by Lua's rule that strings which look like numbers are numbers.
pub(super) fn as_number(datum: &Datum<'_>) -> Option<f64> {
    match datum {
        Datum::Number(value) => Some(*value),
        Datum::Text(text) => number::parse(text.bytes()),
        _ => None,
    }
}

/// The key of a table field, or `None` for nil.
pub(super) fn field_key(datum: Datum<'_>) -> Option<Key<'_>> {
    Some(match datum {
        Datum::Nil => return None,
        Datum::Boolean(value) => Key::Boolean(value),
        Datum::Number(value) => number_key(value),
        Datum::Text(text) => Key::Text(text),
        Datum::Table(id) => Key::Table(id),
        Datum::Builtin(builtin) => Key::Builtin(builtin),
    })
}

fn number_key<'r>(value: f64) -> Key<'r> {
    // Adding zero turns -0 into 0, which is the same key.
    Key::Number((value + 0.0).to_bits())
}

/// The maximum number of locals of all running functions together.
const STACK_SLOTS_MAX: usize = 16 * 1024;

/// The approximate memory of a table field.
const FIELD_BYTES: usize = 64;
