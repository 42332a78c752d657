//! Parses the part of Lua 5.1 that lock scripts are written in.
//!
//! Anything else, and anything that Lua would refuse, ends the attempt with `None`. The script is
//! then not recognised, and Lua reports what is wrong with it.

use crate::script::ast::{Block, Expression, Statement};
use crate::script::lexer::{Lexer, Token};

/// Parses a whole script; returns it with the number of its locals.
pub(super) fn parse(source: &[u8]) -> Option<(Block<'_>, usize)> {
    if source.len() > SOURCE_BYTES_MAX {
        return None;
    }
    let mut lexer = Lexer::new(source);
    let token = lexer.token()?;
    let mut parser = Parser {
        lexer,
        token,
        names: Vec::new(),
        slots: 0,
        levels: 0,
    };
    let body = parser.block()?;
    (parser.token == Token::End && parser.slots <= LOCALS_MAX).then_some((body, parser.slots))
}

/// The state of parsing one script.
struct Parser<'s> {
    lexer: Lexer<'s>,
    token: Token<'s>,
    /// The locals in scope and their slots, newest last. No two locals share a slot.
    names: Vec<(&'s [u8], usize)>,
    slots: usize,
    levels: usize,
}

impl<'s> Parser<'s> {
    fn advance(&mut self) -> Option<Token<'s>> {
        let next = self.lexer.token()?;
        Some(std::mem::replace(&mut self.token, next))
    }

    /// Takes a sign if it is next.
    fn accept(&mut self, sign: &str) -> Option<bool> {
        let is_it = matches!(self.token, Token::Sign(next) if next == sign);
        if is_it {
            self.advance()?;
        }
        Some(is_it)
    }

    fn expect(&mut self, sign: &str) -> Option<()> {
        self.accept(sign)?.then_some(())
    }

    fn name(&mut self) -> Option<&'s [u8]> {
        match self.advance()? {
            Token::Name(name) => Some(name),
            _ => None,
        }
    }

    fn find(&self, name: &[u8]) -> Option<usize> {
        let mut newest = self.names.iter().rev();
        newest
            .find(|(known, _)| *known == name)
            .map(|&(_, slot)| slot)
    }

    fn enter(&mut self) -> Option<()> {
        self.levels += 1;
        (self.levels <= LEVELS_MAX).then_some(())
    }

    fn block(&mut self) -> Option<Block<'s>> {
        self.enter()?;
        let outside = self.names.len();
        let mut block = Vec::new();
        loop {
            match self.token {
                Token::End | Token::Sign("end" | "else" | "elseif") => break,
                Token::Sign("return") => {
                    self.advance()?;
                    let is_empty = matches!(
                        self.token,
                        Token::End | Token::Sign("end" | "else" | "elseif" | ";")
                    );
                    let value = if is_empty {
                        None
                    } else {
                        Some(self.expression()?)
                    };
                    self.accept(";")?;
                    block.push(Statement::Return(value));
                    break;
                }
                _ => {
                    block.push(self.statement()?);
                    self.accept(";")?;
                }
            }
        }
        self.names.truncate(outside);
        self.levels -= 1;
        Some(block)
    }

    fn statement(&mut self) -> Option<Statement<'s>> {
        if self.accept("do")? {
            let body = self.block()?;
            self.expect("end")?;
            return Some(Statement::Do(body));
        }
        if self.accept("if")? {
            return self.condition();
        }
        if self.accept("local")? {
            return self.local();
        }
        let Token::Name(name) = self.token else {
            return None;
        };
        let Some(slot) = self.find(name) else {
            return match self.primary()? {
                Expression::Call(arguments) => Some(Statement::Call(arguments)),
                _ => None,
            };
        };
        self.advance()?;
        self.expect("=")?;
        let value = self.expression()?;
        Some(Statement::Assign { slot, value })
    }

    fn condition(&mut self) -> Option<Statement<'s>> {
        let mut arms = Vec::new();
        loop {
            let condition = self.expression()?;
            self.expect("then")?;
            arms.push((condition, self.block()?));
            if !self.accept("elseif")? {
                break;
            }
        }
        let otherwise = if self.accept("else")? {
            self.block()?
        } else {
            Vec::new()
        };
        self.expect("end")?;
        Some(Statement::If { arms, otherwise })
    }

    fn local(&mut self) -> Option<Statement<'s>> {
        let mut names = vec![self.name()?];
        while self.accept(",")? {
            names.push(self.name()?);
        }
        let values = if self.accept("=")? {
            self.expressions()?
        } else {
            Vec::new()
        };
        let (slot, count) = (self.slots, names.len());
        self.slots += count;
        self.names.extend(names.into_iter().zip(slot..));
        Some(Statement::Local {
            slot,
            count,
            values,
        })
    }

    /// Parses one expression or more, with commas in between.
    fn expressions(&mut self) -> Option<Vec<Expression<'s>>> {
        let mut all = vec![self.expression()?];
        while self.accept(",")? {
            all.push(self.expression()?);
        }
        Some(all)
    }

    fn expression(&mut self) -> Option<Expression<'s>> {
        self.enter()?;
        let mut left = self.conjunction()?;
        while self.accept("or")? {
            left = Expression::Or(left.into(), self.conjunction()?.into());
        }
        self.levels -= 1;
        Some(left)
    }

    fn conjunction(&mut self) -> Option<Expression<'s>> {
        let mut left = self.comparison()?;
        while self.accept("and")? {
            left = Expression::And(left.into(), self.comparison()?.into());
        }
        Some(left)
    }

    fn comparison(&mut self) -> Option<Expression<'s>> {
        let mut left = self.operand()?;
        while let Token::Sign(sign @ ("==" | "~=" | "<" | "<=" | ">" | ">=")) = self.token {
            self.advance()?;
            left = Expression::Compare(sign, left.into(), self.operand()?.into());
        }
        Some(left)
    }

    fn operand(&mut self) -> Option<Expression<'s>> {
        if self.accept("not")? {
            self.enter()?;
            let operand = self.operand()?;
            self.levels -= 1;
            return Some(Expression::Not(operand.into()));
        }
        if self.accept("-")? {
            return match self.advance()? {
                Token::Number(number) => Some(Expression::Number(-number)),
                _ => None,
            };
        }
        self.primary()
    }

    fn primary(&mut self) -> Option<Expression<'s>> {
        Some(match self.advance()? {
            Token::Sign("nil") => Expression::Nil,
            Token::Sign("true") => Expression::True,
            Token::Sign("false") => Expression::False,
            Token::Number(number) => Expression::Number(number),
            Token::Text(text) => Expression::Text(text),
            Token::Sign("(") => {
                let inner = self.expression()?;
                self.expect(")")?;
                inner
            }
            Token::Name(name) => match (self.find(name), name) {
                (Some(slot), _) => Expression::Local(slot),
                (None, b"KEYS") => Expression::Key(self.index()?),
                (None, b"ARGV") => Expression::Argument(self.index()?),
                (None, b"redis" | b"server") => self.call()?,
                _ => return None,
            },
            _ => return None,
        })
    }

    fn index(&mut self) -> Option<i64> {
        self.expect("[")?;
        let Token::Number(number) = self.advance()? else {
            return None;
        };
        self.expect("]")?;
        Some(number)
    }

    /// Parses the rest of `redis.call(...)`.
    fn call(&mut self) -> Option<Expression<'s>> {
        let name = if self.accept(".")? {
            self.name()?
        } else {
            self.expect("[")?;
            let Token::Text(name) = self.advance()? else {
                return None;
            };
            self.expect("]")?;
            name
        };
        // Lua 5.1 refuses a call whose arguments begin on another line.
        if name != b"call" || self.lexer.is_new_line {
            return None;
        }
        self.expect("(")?;
        let arguments = self.expressions()?;
        self.expect(")")?;
        Some(Expression::Call(arguments))
    }
}

/// The longest script that is looked at. The largest known release or extend script has 500 bytes.
const SOURCE_BYTES_MAX: usize = 4096;

/// Lua's own limit of locals.
const LOCALS_MAX: usize = 200;

/// The deepest nesting; lock scripts nest four deep. The script comes from a client, and the stack
/// is ours.
const LEVELS_MAX: usize = 32;
