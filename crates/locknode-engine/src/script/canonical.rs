//! The canonical text of a script: the same for scripts that differ only in how they are written.
//!
//! Made from the tree, so white space, comments, quotes, semicolons, superfluous parentheses and local
//! names are gone already. Command names are put in lower case, `server.call` is `redis.call`, and when
//! an arm of an `if` returns, what follows the `if` counts as its `else`.

use crate::script::ast::{
    Block, Call, Callee, Chunk, Expression, Function, Input, Item, Operator, Statement, Target,
};
use crate::script::builtin::Builtin;
use crate::script::number;

/// Writes the canonical text of a script.
pub(super) fn write(chunk: &Chunk) -> Vec<u8> {
    let mut writer = Writer { text: Vec::new() };
    for (index, function) in chunk.functions.iter().enumerate() {
        writer.function(index, function);
    }
    writer.block(&chunk.body);
    writer.text
}

/// What is still to be written in a block.
#[derive(Debug, Clone, Copy)]
enum Piece<'c> {
    Statements(&'c [Statement]),
    /// The rest of an `if`, from one of its arms on.
    Arms(&'c [(Expression, Block)], Option<&'c Block>),
}

#[derive(Debug)]
struct Writer {
    text: Vec<u8>,
}

impl Writer {
    fn put(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    fn function(&mut self, index: usize, function: &Function) {
        self.put(&format!("function f{index}({}){{", function.parameters));
        self.block(&function.body);
        self.put("}");
    }

    /// Writes a block. What follows an arm that returns is written inside its `else`; that would be a
    /// recursion as deep as the script is long, so open braces are only counted.
    fn block(&mut self, block: &Block) {
        let mut pieces = vec![Piece::Statements(block)];
        let mut open = 0;
        while let Some(piece) = pieces.pop() {
            match piece {
                Piece::Statements([]) => {}
                Piece::Statements([Statement::If { arms, otherwise }, rest @ ..]) => {
                    pieces.push(Piece::Statements(rest));
                    pieces.push(Piece::Arms(arms, otherwise.as_ref()));
                }
                Piece::Statements([first, rest @ ..]) => {
                    self.statement(first);
                    pieces.push(Piece::Statements(rest));
                }
                Piece::Arms([], otherwise) => {
                    pieces.extend(otherwise.map(|block| Piece::Statements(block)));
                }
                Piece::Arms([(condition, body), others @ ..], otherwise) if returns(body) => {
                    self.arm(condition, body);
                    self.put("else{");
                    open += 1;
                    pieces.push(Piece::Arms(others, otherwise));
                }
                Piece::Arms(arms, otherwise) => self.arms(arms, otherwise),
            }
        }
        self.put(&"}".repeat(open));
    }

    fn arms(&mut self, arms: &[(Expression, Block)], otherwise: Option<&Block>) {
        for (condition, body) in arms {
            self.arm(condition, body);
            self.put("else{");
        }
        if let Some(block) = otherwise {
            self.block(block);
        }
        self.put(&"}".repeat(arms.len()));
    }

    fn arm(&mut self, condition: &Expression, body: &Block) {
        self.put("if ");
        self.expression(condition);
        self.put("{");
        self.block(body);
        self.put("}");
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Local {
                slot,
                count,
                values,
            } => {
                self.put(&format!("local v{slot}+{count}="));
                self.list(values);
            }
            Statement::Function => return,
            Statement::Assign {
                targets, values, ..
            } => {
                for target in targets {
                    self.target(target);
                    self.put(",");
                }
                self.put("=");
                self.list(values);
            }
            Statement::Call(call) => self.call(call),
            Statement::Do(body) => return self.block(body),
            Statement::While { condition, body } => {
                self.put("while ");
                self.expression(condition);
                self.braces(body);
            }
            Statement::Repeat { body, until } => {
                self.put("repeat");
                self.braces(body);
                self.expression(until);
            }
            Statement::Count {
                slot, range, body, ..
            } => {
                self.put(&format!("for v{slot}="));
                self.list(range.as_slice());
                self.braces(body);
            }
            Statement::Each {
                pairs,
                over,
                slot,
                count,
                body,
                ..
            } => {
                let name = if *pairs { "pairs" } else { "ipairs" };
                self.put(&format!("for v{slot}+{count} in {name} "));
                self.expression(over);
                self.braces(body);
            }
            // Pieces take every `if` out of its block before it gets here.
            Statement::If { .. } => return,
            Statement::Return(values) => {
                self.put("return ");
                // A script without a value answers nil.
                if values.is_empty() {
                    self.put("nil")
                } else {
                    self.list(values)
                }
            }
            Statement::Break => self.put("break"),
        }
        self.put(";");
    }

    fn braces(&mut self, body: &Block) {
        self.put("{");
        self.block(body);
        self.put("}");
    }

    fn target(&mut self, target: &Target) {
        match target {
            Target::Local(slot) => self.put(&format!("v{slot}")),
            Target::Outer(slot) => self.put(&format!("o{slot}")),
            Target::Global => self.put("global"),
            Target::Index { base, key, .. } => self.element(base, key),
        }
    }

    fn element(&mut self, base: &Expression, key: &Expression) {
        self.expression(base);
        self.put("[");
        self.expression(key);
        self.put("]");
    }

    fn list(&mut self, expressions: &[Expression]) {
        for (at, expression) in expressions.iter().enumerate() {
            if at > 0 {
                self.put(",");
            }
            self.expression(expression);
        }
    }

    fn expression(&mut self, expression: &Expression) {
        match expression {
            Expression::Nil => self.put("nil"),
            Expression::True => self.put("true"),
            Expression::False => self.put("false"),
            Expression::Number(value) => self.text.extend(number::argument(*value)),
            Expression::Text(text) => self.quoted(text),
            Expression::Input(Input::Keys) => self.put("KEYS"),
            Expression::Input(Input::Args) => self.put("ARGV"),
            Expression::Local { slot, .. } => self.put(&format!("v{slot}")),
            Expression::Outer { slot, .. } => self.put(&format!("o{slot}")),
            Expression::Missing { name, .. } => self.put(&format!("g{name}")),
            Expression::Builtin(builtin) => self.put(builtin.name()),
            Expression::Index(index) => self.element(&index.base, &index.key),
            Expression::Call(call) => self.call(call),
            Expression::First(inner) => self.prefix("(", inner),
            Expression::Not(inner) => self.prefix("not(", inner),
            Expression::Negate(inner, _) => self.prefix("-(", inner),
            Expression::Length(inner, _) => self.prefix("#(", inner),
            Expression::And(left, right) => self.infix(left, " and ", right),
            Expression::Or(left, right) => self.infix(left, " or ", right),
            Expression::Binary(binary) => {
                self.infix(&binary.left, sign(binary.operator), &binary.right);
            }
            Expression::Table(items, _) => {
                self.put("{");
                for item in items {
                    if let Item::Keyed(key, _) = item {
                        self.put("[");
                        self.expression(key);
                        self.put("]=");
                    }
                    let (Item::Keyed(_, value) | Item::Next(value)) = item;
                    self.expression(value);
                    self.put(",");
                }
                self.put("}");
            }
        }
    }

    fn prefix(&mut self, sign: &str, inner: &Expression) {
        self.put(sign);
        self.expression(inner);
        self.put(")");
    }

    fn infix(&mut self, left: &Expression, sign: &str, right: &Expression) {
        self.put("(");
        self.expression(left);
        self.put(sign);
        self.expression(right);
        self.put(")");
    }

    fn call(&mut self, call: &Call) {
        match &call.callee {
            Callee::Builtin(builtin) => self.put(builtin.name()),
            Callee::Function(index) => self.put(&format!("f{index}")),
            Callee::Value(expression) => self.expression(expression),
        }
        self.put("(");
        match (&call.callee, call.arguments.as_slice()) {
            (
                Callee::Builtin(Builtin::Call | Builtin::ProtectedCall),
                [Expression::Text(name), rest @ ..],
            ) => {
                self.quoted(&name.to_ascii_lowercase());
                if !rest.is_empty() {
                    self.put(",");
                }
                self.list(rest);
            }
            (_, arguments) => self.list(arguments),
        }
        self.put(")");
    }

    fn quoted(&mut self, text: &[u8]) {
        self.put("'");
        for &byte in text {
            match byte {
                b'\'' | b'\\' => self.text.extend([b'\\', byte]),
                b' '..=b'~' => self.text.push(byte),
                _ => self.put(&format!("\\{byte:03}")),
            }
        }
        self.put("'");
    }
}

/// Whether a block surely ends with a `return`.
fn returns(block: &Block) -> bool {
    match block.last() {
        Some(Statement::Return(_)) => true,
        Some(Statement::Do(body)) => returns(body),
        Some(Statement::If {
            arms,
            otherwise: Some(otherwise),
        }) => arms.iter().all(|(_, body)| returns(body)) && returns(otherwise),
        _ => false,
    }
}

fn sign(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::Modulo => "%",
        Operator::Power => "^",
        Operator::Concatenate => "..",
        Operator::Equal => "==",
        Operator::NotEqual => "~=",
        Operator::Less => "<",
        Operator::LessOrEqual => "<=",
        Operator::Greater => ">",
        Operator::GreaterOrEqual => ">=",
    }
}

#[cfg(test)]
mod tests {
    use crate::script::Program;

    fn canonical(source: &str) -> String {
        let program = Program::compile(source.as_bytes()).unwrap();
        String::from_utf8(program.canonical()).unwrap()
    }

    #[test]
    fn scripts_that_differ_in_writing_only_have_one_canonical_text() {
        let groups: [&[&str]; 4] = [
            &[
                "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end",
                "if redis.call(\"GET\", KEYS[1]) == ARGV[1]\r\nthen\r\n\treturn redis.call(\"DEL\", KEYS[1]);\r\nend\r\nreturn 0 -- no",
                "if (redis['call']([[get]],KEYS[1])==(ARGV[1])) then return server.call('del',KEYS[1]) else do return 0 end end",
            ],
            &[
                "local a = KEYS[1] local b = a return b",
                "local key=KEYS[1]; --[[x]] local k2=key; return k2",
            ],
            &[
                "if KEYS[1] then return 1 elseif KEYS[2] then return 2 else return 3 end",
                "if KEYS[1] then return 1 end if KEYS[2] then return 2 end return 3",
                "if KEYS[1] then return 1 else if KEYS[2] then return 2 end return 3 end",
            ],
            &["return", "return nil"],
        ];
        for group in groups {
            for source in group {
                assert_eq!(canonical(source), canonical(group[0]), "{source}");
                let shape = |source: &str| Program::compile(source.as_bytes()).unwrap().shape();
                assert_eq!(shape(source), shape(group[0]), "{source}");
            }
        }
    }

    #[test]
    fn scripts_that_differ_in_meaning_have_different_canonical_texts() {
        let sources = [
            "return redis.call('get',KEYS[1])",
            "return redis.pcall('get',KEYS[1])",
            "return redis.call('get',KEYS[2])",
            "return redis.call('get',ARGV[1])",
            "return '1'",
            "return 1",
            "return -1",
            "local a, b = 1, 2 return a",
            "local a, b = 1, 2 return b",
            "if KEYS[1] then local a = 1 end return 0",
            "if KEYS[1] then return 1 end return 0",
            "if KEYS[1] then return 0 end return 1",
            "return (unpack(KEYS))",
            "return unpack(KEYS)",
            "return 1 + 2 * 3",
            "return (1 + 2) * 3",
        ];
        let mut texts: Vec<_> = sources.iter().map(|source| canonical(source)).collect();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), sources.len());
    }
}
