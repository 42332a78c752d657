//! Parses the expressions of a script.
//!
//! Operators are parsed by precedence climbing with Lua's own priorities. Library functions are
//! resolved here, so that a script that uses a non-native one is refused before it runs.

use crate::script::ast::{Binary, Call, Callee, Expression, Index, Input, Item, Operator};
use crate::script::builtin::{self, Builtin, Field, Global};
use crate::script::command;
use crate::script::error::CompileError;
use crate::script::lexer::Token;
use crate::script::parser::Parser;
use crate::script::scope::Binding;

/// An operator between two operands.
#[derive(Debug, Clone, Copy)]
enum Joint {
    And,
    Or,
    Plain(Operator),
}

impl<'s> Parser<'s> {
    pub(super) fn expressions(&mut self) -> Result<Vec<Expression>, CompileError> {
        let mut all = vec![self.expression()?];
        while self.accept(",")? {
            all.push(self.expression()?);
        }
        Ok(all)
    }

    pub(super) fn expression(&mut self) -> Result<Expression, CompileError> {
        self.operation(0)
    }

    /// Parses operators that bind tighter than `limit`.
    fn operation(&mut self, limit: u8) -> Result<Expression, CompileError> {
        self.enter()?;
        let first = self.operand()?;
        let whole = self.joined(first, limit)?;
        self.leave(1);
        Ok(whole)
    }

    fn operand(&mut self) -> Result<Expression, CompileError> {
        if self.accept("not")? {
            let operand = self.operation(UNARY)?;
            return Ok(Expression::Not(Box::new(operand)));
        }
        if self.accept("-")? {
            let operand = self.operation(UNARY)?;
            return Ok(match operand {
                // Lua folds a negated literal too, so that it prints the same.
                Expression::Number(value) => Expression::Number(-value),
                other => Expression::Negate(Box::new(other), self.last_line),
            });
        }
        if self.accept("#")? {
            let operand = self.operation(UNARY)?;
            return Ok(Expression::Length(Box::new(operand), self.last_line));
        }
        self.simple()
    }

    /// Continues an expression that starts with `left`. The tree grows to the left with each
    /// operator, so each one counts as a level.
    fn joined(&mut self, mut left: Expression, limit: u8) -> Result<Expression, CompileError> {
        let mut levels = 0;
        while let Some((joint, left_priority, right_priority)) = joint(&self.token) {
            if left_priority <= limit {
                break;
            }
            self.enter()?;
            levels += 1;
            self.advance()?;
            let right = self.operation(right_priority)?;
            left = match joint {
                Joint::And => Expression::And(Box::new(left), Box::new(right)),
                Joint::Or => Expression::Or(Box::new(left), Box::new(right)),
                Joint::Plain(operator) => Expression::Binary(Box::new(Binary {
                    operator,
                    left,
                    right,
                    line: self.last_line,
                })),
            };
        }
        self.leave(levels);
        Ok(left)
    }

    fn simple(&mut self) -> Result<Expression, CompileError> {
        match &self.token {
            Token::Number(value) => {
                let value = *value;
                self.advance()?;
                Ok(Expression::Number(value))
            }
            Token::Text(_) => Ok(match self.advance()? {
                Token::Text(text) => Expression::Text(text.into()),
                _ => Expression::Nil,
            }),
            Token::Word("nil") => self.literal(Expression::Nil),
            Token::Word("true") => self.literal(Expression::True),
            Token::Word("false") => self.literal(Expression::False),
            Token::Word("function") => Err(self.unsupported("function value")),
            Token::Sign("...") => Err(self.unsupported("'...'")),
            Token::Sign("{") => self.table(),
            _ => self.suffixed(),
        }
    }

    fn literal(&mut self, value: Expression) -> Result<Expression, CompileError> {
        self.advance()?;
        Ok(value)
    }

    /// Parses a name or a parenthesised expression with its indexes and calls.
    pub(super) fn suffixed(&mut self) -> Result<Expression, CompileError> {
        let line = self.line;
        match self.token {
            Token::Name(name) => {
                self.advance()?;
                let first = self.resolve(name, line)?;
                self.suffixes(first)
            }
            Token::Sign("(") => {
                self.advance()?;
                let inner = self.expression()?;
                self.expect_end(")", "(", line)?;
                let first = if inner.is_multiple() {
                    Expression::First(Box::new(inner))
                } else {
                    inner
                };
                self.parenthesised(first)
            }
            _ => Err(self.error("unexpected symbol")),
        }
    }

    /// Parentheses turn their content into a value: it can be indexed, but not assigned to.
    fn parenthesised(&mut self, inner: Expression) -> Result<Expression, CompileError> {
        let whole = self.suffixes(inner)?;
        if self.at_sign("=") && !matches!(whole, Expression::Index(_)) {
            return Err(self.error("syntax error"));
        }
        Ok(whole)
    }

    fn suffixes(&mut self, mut whole: Expression) -> Result<Expression, CompileError> {
        let mut levels = 0;
        loop {
            match self.token {
                Token::Sign(".") => {
                    self.advance()?;
                    let key = Expression::Text(self.name()?.into());
                    whole = index(whole, key, self.last_line);
                }
                Token::Sign("[") => {
                    self.advance()?;
                    let key = self.expression()?;
                    self.expect("]")?;
                    whole = index(whole, key, self.last_line);
                }
                _ if self.at_call() => whole = self.call(whole)?,
                Token::Sign(":") => return Err(self.unsupported("method call")),
                _ => break,
            }
            self.enter()?;
            levels += 1;
        }
        self.leave(levels);
        Ok(whole)
    }

    fn at_call(&self) -> bool {
        matches!(self.token, Token::Sign("(" | "{") | Token::Text(_))
    }

    fn call(&mut self, callee: Expression) -> Result<Expression, CompileError> {
        let callee = match callee {
            Expression::Builtin(builtin) => Callee::Builtin(builtin),
            other => Callee::Value(other),
        };
        self.call_of(callee)
    }

    fn call_of(&mut self, callee: Callee) -> Result<Expression, CompileError> {
        let line = self.line;
        let arguments = self.arguments()?;
        self.check_call(&callee, &arguments, line)?;
        Ok(Call {
            callee,
            arguments,
            line,
        }
        .into())
    }

    fn arguments(&mut self) -> Result<Vec<Expression>, CompileError> {
        match self.token {
            Token::Text(_) => Ok(vec![self.simple()?]),
            Token::Sign("{") => Ok(vec![self.table()?]),
            Token::Sign("(") => {
                let line = self.line;
                if line != self.last_line {
                    let what = "ambiguous syntax (function call x new statement)";
                    return Err(self.error(what));
                }
                self.advance()?;
                let arguments = if self.at_sign(")") {
                    Vec::new()
                } else {
                    self.expressions()?
                };
                self.expect_end(")", "(", line)?;
                Ok(arguments)
            }
            _ => Err(self.error("function arguments expected")),
        }
    }

    fn resolve(&mut self, name: &'s [u8], line: u32) -> Result<Expression, CompileError> {
        match self.scope.find(name) {
            Some(Binding::Local(slot)) => {
                return Ok(Expression::Local {
                    slot,
                    name: self.intern(name),
                });
            }
            Some(Binding::Outer(slot)) => {
                return Ok(Expression::Outer {
                    slot,
                    name: self.intern(name),
                });
            }
            Some(Binding::Function(function)) => {
                if self.at_call() {
                    return self.call_of(Callee::Function(function));
                }
                return Err(self.unsupported("function as a value"));
            }
            None => {}
        }
        match name {
            b"KEYS" => return Ok(Expression::Input(Input::Keys)),
            b"ARGV" => return Ok(Expression::Input(Input::Args)),
            _ => {}
        }
        match builtin::global(name) {
            Global::Builtin(found) => Ok(Expression::Builtin(found)),
            Global::Library => self.library(name, line),
            Global::Unsupported => Err(CompileError::unsupported(
                &String::from_utf8_lossy(name),
                line,
            )),
            Global::Missing => Ok(Expression::Missing {
                name: self.intern(name),
                line,
            }),
        }
    }

    fn library(&mut self, library: &[u8], line: u32) -> Result<Expression, CompileError> {
        let shown = String::from_utf8_lossy(library).into_owned();
        let field = if self.accept(".")? {
            self.name()?.to_vec()
        } else if self.accept("[")? {
            let Token::Text(field) = self.advance()? else {
                return Err(CompileError::unsupported(
                    &format!("{shown} as a value"),
                    line,
                ));
            };
            self.expect("]")?;
            field
        } else {
            return Err(CompileError::unsupported(
                &format!("{shown} as a value"),
                line,
            ));
        };
        match builtin::field(library, &field) {
            Some(Field::Builtin(found)) => Ok(Expression::Builtin(found)),
            Some(Field::Number(value)) => Ok(Expression::Number(value)),
            None => {
                let construct = format!("{shown}.{}", String::from_utf8_lossy(&field));
                Err(CompileError::unsupported(&construct, line))
            }
        }
    }

    fn table(&mut self) -> Result<Expression, CompileError> {
        let line = self.line;
        self.expect("{")?;
        let mut items = Vec::new();
        while !self.at_sign("}") {
            items.push(self.item()?);
            if !self.accept(",")? && !self.accept(";")? {
                break;
            }
        }
        self.expect_end("}", "{", line)?;
        Ok(Expression::Table(items, self.last_line))
    }

    fn item(&mut self) -> Result<Item, CompileError> {
        if self.accept("[")? {
            let key = self.expression()?;
            self.expect("]")?;
            self.expect("=")?;
            return Ok(Item::Keyed(key, self.expression()?));
        }
        let Token::Name(name) = self.token else {
            return Ok(Item::Next(self.expression()?));
        };
        let line = self.line;
        self.advance()?;
        if self.accept("=")? {
            return Ok(Item::Keyed(
                Expression::Text(name.into()),
                self.expression()?,
            ));
        }
        // The name began an expression after all.
        self.enter()?;
        let first = self.resolve(name, line)?;
        let first = self.suffixes(first)?;
        let whole = self.joined(first, 0)?;
        self.leave(1);
        Ok(Item::Next(whole))
    }

    /// Refuses calls that are known to be outside the native subset, and notes calls that may
    /// write.
    fn check_call(
        &mut self,
        callee: &Callee,
        arguments: &[Expression],
        line: u32,
    ) -> Result<(), CompileError> {
        let Callee::Builtin(builtin) = callee else {
            return Ok(());
        };
        match (builtin, arguments) {
            (Builtin::Call | Builtin::ProtectedCall, [Expression::Text(name), ..])
                if command::effect(name).is_none() =>
            {
                let name = String::from_utf8_lossy(name);
                let construct = format!("redis.{}('{name}')", builtin.name());
                return Err(CompileError::unsupported(&construct, line));
            }
            (Builtin::ToNumber, [_, base, ..]) if !matches!(base, Expression::Number(base) if *base == 10.0) =>
            {
                return Err(CompileError::unsupported("tonumber with a base", line));
            }
            _ => {}
        }
        Ok(())
    }
}

fn index(base: Expression, key: Expression, line: u32) -> Expression {
    Expression::Index(Box::new(Index { base, key, line }))
}

/// Returns the operator at a token with its left and right priority; they differ if it is
/// right-associative.
fn joint(token: &Token<'_>) -> Option<(Joint, u8, u8)> {
    Some(match token {
        Token::Word("or") => (Joint::Or, 1, 1),
        Token::Word("and") => (Joint::And, 2, 2),
        Token::Sign("<") => (Joint::Plain(Operator::Less), 3, 3),
        Token::Sign(">") => (Joint::Plain(Operator::Greater), 3, 3),
        Token::Sign("<=") => (Joint::Plain(Operator::LessOrEqual), 3, 3),
        Token::Sign(">=") => (Joint::Plain(Operator::GreaterOrEqual), 3, 3),
        Token::Sign("~=") => (Joint::Plain(Operator::NotEqual), 3, 3),
        Token::Sign("==") => (Joint::Plain(Operator::Equal), 3, 3),
        Token::Sign("..") => (Joint::Plain(Operator::Concatenate), 5, 4),
        Token::Sign("+") => (Joint::Plain(Operator::Add), 6, 6),
        Token::Sign("-") => (Joint::Plain(Operator::Subtract), 6, 6),
        Token::Sign("*") => (Joint::Plain(Operator::Multiply), 7, 7),
        Token::Sign("/") => (Joint::Plain(Operator::Divide), 7, 7),
        Token::Sign("%") => (Joint::Plain(Operator::Modulo), 7, 7),
        Token::Sign("^") => (Joint::Plain(Operator::Power), 10, 9),
        _ => return None,
    })
}

/// The priority of `not`, `-` and `#`.
const UNARY: u8 = 8;
