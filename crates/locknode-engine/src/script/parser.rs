//! Parses the statements of a script into the tree of `ast.rs`; `expression.rs` parses expressions.
//!
//! Recursive descent as in Lua's own parser, so that its errors appear at the same place with the
//! same text. Nesting is limited, because the script comes from a client and the stack is ours.
//! Valid Lua outside the native subset ends in [`CompileError::unsupported`].

use std::collections::BTreeMap;

use crate::script::ast::{Block, Call, Chunk, Expression, Function, Statement, Target};
use crate::script::error::CompileError;
use crate::script::lexer::{Lexer, Token};
use crate::script::scope::{LOCALS_MAX, Scope};

/// Parses a script whose first line is `line`.
///
/// # Errors
/// The text is not Lua, or is Lua outside the native subset.
pub(super) fn parse(source: &[u8], line: u32) -> Result<Chunk, CompileError> {
    if source.len() > SOURCE_BYTES_MAX {
        let construct = format!("script of more than {SOURCE_BYTES_MAX} bytes");
        return Err(CompileError::unsupported(&construct, line));
    }
    let mut parser = Parser::new(source, line)?;
    let body = parser.block()?;
    if parser.token != Token::End {
        return Err(parser.expected("<eof>"));
    }
    Ok(Chunk {
        body,
        frame: parser.scope.main_size(),
        functions: parser.functions,
        names: parser.names,
    })
}

/// The state of parsing one script.
#[derive(Debug)]
pub(super) struct Parser<'s> {
    lexer: Lexer<'s>,
    pub(super) token: Token<'s>,
    /// The line of `token`.
    pub(super) line: u32,
    /// The line of the previous token, to which Lua attributes what was just parsed.
    pub(super) last_line: u32,
    pub(super) scope: Scope<'s>,
    functions: Vec<Function>,
    names: Vec<Box<[u8]>>,
    /// Where each name is in `names`.
    numbers: BTreeMap<Box<[u8]>, usize>,
    levels: usize,
}

impl<'s> Parser<'s> {
    fn new(source: &'s [u8], line: u32) -> Result<Self, CompileError> {
        let mut lexer = Lexer::new(source, line);
        let token = lexer.token()?;
        let line = lexer.line();
        Ok(Self {
            lexer,
            token,
            line,
            last_line: line,
            scope: Scope::default(),
            functions: Vec::new(),
            names: Vec::new(),
            numbers: BTreeMap::new(),
            levels: 0,
        })
    }

    /// Advances and returns the token that was current.
    pub(super) fn advance(&mut self) -> Result<Token<'s>, CompileError> {
        self.last_line = self.line;
        let next = self.lexer.token()?;
        self.line = self.lexer.line();
        Ok(std::mem::replace(&mut self.token, next))
    }

    pub(super) fn at_sign(&self, sign: &str) -> bool {
        matches!(self.token, Token::Sign(current) if current == sign)
    }

    pub(super) fn at_word(&self, word: &str) -> bool {
        matches!(self.token, Token::Word(current) if current == word)
    }

    /// Advances if the current token is this word or sign.
    pub(super) fn accept(&mut self, text: &str) -> Result<bool, CompileError> {
        let found = self.at_sign(text) || self.at_word(text);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(super) fn expect(&mut self, text: &str) -> Result<(), CompileError> {
        if self.accept(text)? {
            Ok(())
        } else {
            Err(self.expected(text))
        }
    }

    /// Expects the end of a construct that began with `opener` on `line`.
    pub(super) fn expect_end(
        &mut self,
        text: &str,
        opener: &str,
        line: u32,
    ) -> Result<(), CompileError> {
        if self.accept(text)? {
            return Ok(());
        }
        if line == self.line {
            return Err(self.expected(text));
        }
        Err(self.error(&format!(
            "'{text}' expected (to close '{opener}' at line {line})"
        )))
    }

    pub(super) fn name(&mut self) -> Result<&'s [u8], CompileError> {
        let Token::Name(name) = self.token else {
            return Err(self.expected("<name>"));
        };
        self.advance()?;
        Ok(name)
    }

    pub(super) fn expected(&self, text: &str) -> CompileError {
        self.error(&format!("'{text}' expected"))
    }

    pub(super) fn error(&self, what: &str) -> CompileError {
        CompileError::syntax(self.line, what, Some(&self.lexer.near(&self.token)))
    }

    pub(super) fn unsupported(&self, construct: &str) -> CompileError {
        CompileError::unsupported(construct, self.line)
    }

    /// Goes one level of nesting deeper.
    pub(super) fn enter(&mut self) -> Result<(), CompileError> {
        self.levels += 1;
        if self.levels > LEVELS_MAX {
            return Err(CompileError::syntax(
                self.line,
                "chunk has too many syntax levels",
                None,
            ));
        }
        Ok(())
    }

    pub(super) fn leave(&mut self, levels: usize) {
        self.levels -= levels;
    }

    /// Remembers a name for error texts.
    pub(super) fn intern(&mut self, name: &[u8]) -> usize {
        if let Some(at) = self.numbers.get(name) {
            return *at;
        }
        let at = self.names.len();
        self.numbers.insert(name.into(), at);
        self.names.push(name.into());
        at
    }

    fn declare(&mut self, name: &'s [u8]) -> Result<usize, CompileError> {
        self.scope.declare(name).ok_or_else(|| {
            let owner = if self.scope.in_function() {
                "function"
            } else {
                "main function"
            };
            let what = format!("{owner} has more than {LOCALS_MAX} local variables");
            CompileError::syntax(self.line, &what, None)
        })
    }

    /// Parses statements until a token that ends a block, in their own scope.
    fn block(&mut self) -> Result<Block, CompileError> {
        let mark = self.scope.open();
        let block = self.open_block()?;
        self.scope.close(mark);
        Ok(block)
    }

    /// Parses statements and leaves their scope open, as `until` needs.
    fn open_block(&mut self) -> Result<Block, CompileError> {
        self.enter()?;
        let mut statements = Vec::new();
        while !self.at_block_end() {
            let last = self.at_word("return") || self.at_word("break");
            statements.push(self.statement()?);
            self.accept(";")?;
            if last {
                break;
            }
        }
        self.leave(1);
        Ok(statements)
    }

    fn at_block_end(&self) -> bool {
        matches!(
            self.token,
            Token::End | Token::Word("end" | "else" | "elseif" | "until")
        )
    }

    fn statement(&mut self) -> Result<Statement, CompileError> {
        let line = self.line;
        match self.token {
            Token::Word("if") => self.branch(line),
            Token::Word("while") => self.while_loop(line),
            Token::Word("do") => {
                self.advance()?;
                let body = self.block()?;
                self.expect_end("end", "do", line)?;
                Ok(Statement::Do(body))
            }
            Token::Word("for") => self.for_loop(line),
            Token::Word("repeat") => self.repeat_loop(line),
            Token::Word("function") => Err(self.unsupported("global function")),
            Token::Word("local") => self.local(),
            Token::Word("return") => self.returned(),
            Token::Word("break") => {
                self.advance()?;
                if self.scope.in_loop() {
                    Ok(Statement::Break)
                } else {
                    Err(self.error("no loop to break"))
                }
            }
            _ => self.expression_statement(),
        }
    }

    fn branch(&mut self, line: u32) -> Result<Statement, CompileError> {
        let mut arms = Vec::new();
        let mut otherwise = None;
        loop {
            self.advance()?;
            let condition = self.expression()?;
            self.expect("then")?;
            arms.push((condition, self.block()?));
            if !self.at_word("elseif") {
                break;
            }
        }
        if self.accept("else")? {
            otherwise = Some(self.block()?);
        }
        self.expect_end("end", "if", line)?;
        Ok(Statement::If { arms, otherwise })
    }

    fn while_loop(&mut self, line: u32) -> Result<Statement, CompileError> {
        self.advance()?;
        let condition = self.expression()?;
        self.expect("do")?;
        let body = self.loop_body()?;
        self.expect_end("end", "while", line)?;
        Ok(Statement::While { condition, body })
    }

    fn loop_body(&mut self) -> Result<Block, CompileError> {
        self.scope.enter_loop();
        let body = self.block()?;
        self.scope.leave_loop();
        Ok(body)
    }

    fn repeat_loop(&mut self, line: u32) -> Result<Statement, CompileError> {
        self.advance()?;
        let mark = self.scope.open();
        self.scope.enter_loop();
        let body = self.open_block()?;
        self.scope.leave_loop();
        self.expect_end("until", "repeat", line)?;
        let until = self.expression()?;
        self.scope.close(mark);
        Ok(Statement::Repeat { body, until })
    }

    fn for_loop(&mut self, line: u32) -> Result<Statement, CompileError> {
        self.advance()?;
        let first = self.name()?;
        let mark = self.scope.open();
        let statement = match self.token {
            Token::Sign("=") => self.count_loop(first, line)?,
            Token::Sign(",") | Token::Word("in") => self.each_loop(first, line)?,
            _ => return Err(self.error("'=' or 'in' expected")),
        };
        self.scope.close(mark);
        self.expect_end("end", "for", line)?;
        Ok(statement)
    }

    fn count_loop(&mut self, name: &'s [u8], line: u32) -> Result<Statement, CompileError> {
        self.advance()?;
        let start = self.expression()?;
        self.expect(",")?;
        let stop = self.expression()?;
        let step = if self.accept(",")? {
            self.expression()?
        } else {
            Expression::Number(1.0)
        };
        self.expect("do")?;
        let slot = self.declare(name)?;
        let body = self.loop_body()?;
        Ok(Statement::Count {
            slot,
            range: Box::new([start, stop, step]),
            body,
            line,
        })
    }

    fn each_loop(&mut self, first: &'s [u8], line: u32) -> Result<Statement, CompileError> {
        let mut names = vec![first];
        while self.accept(",")? {
            names.push(self.name()?);
        }
        self.expect("in")?;
        let pairs = match self.token {
            Token::Name(b"ipairs") if self.scope.find(b"ipairs").is_none() => false,
            Token::Name(b"pairs") if self.scope.find(b"pairs").is_none() => true,
            _ => {
                return Err(
                    self.unsupported("for over something other than ipairs(...) or pairs(...)")
                );
            }
        };
        self.advance()?;
        let call_line = self.line;
        if !self.accept("(")? {
            return Err(self.unsupported("for over something other than ipairs(...) or pairs(...)"));
        }
        if self.at_sign(")") {
            return Err(self.unsupported("ipairs or pairs without a list"));
        }
        let over = self.expression()?;
        self.expect_end(")", "(", call_line)?;
        if !self.at_word("do") {
            return Err(self.unsupported("for with several iterators"));
        }
        self.advance()?;
        let count = names.len();
        let slot = self.scope.next_slot();
        for name in names {
            self.declare(name)?;
        }
        let body = self.loop_body()?;
        Ok(Statement::Each {
            pairs,
            over,
            slot,
            count,
            body,
            line,
        })
    }

    fn local(&mut self) -> Result<Statement, CompileError> {
        self.advance()?;
        if self.accept("function")? {
            let name = self.name()?;
            let index = self.functions.len();
            self.scope.declare_function(name, index);
            return self.function(index);
        }
        let mut names = vec![self.name()?];
        while self.accept(",")? {
            names.push(self.name()?);
        }
        let assigned = self.accept("=")?;
        if let (true, [name]) = (assigned && self.at_word("function"), names.as_slice()) {
            self.advance()?;
            let index = self.functions.len();
            let statement = self.function(index)?;
            self.scope.declare_function(name, index);
            return Ok(statement);
        }
        let values = if assigned {
            self.expressions()?
        } else {
            Vec::new()
        };
        let slot = self.scope.next_slot();
        let count = names.len();
        for name in names {
            self.declare(name)?;
        }
        Ok(Statement::Local {
            slot,
            count,
            values,
        })
    }

    /// Parses a function from its parameters on.
    fn function(&mut self, index: usize) -> Result<Statement, CompileError> {
        let line = self.line;
        if !self.scope.enter_function() {
            return Err(self.unsupported("function inside a function"));
        }
        // The index is reserved now, so that the body may call the function itself.
        self.functions.push(Function {
            parameters: 0,
            frame: 0,
            body: Vec::new(),
        });
        self.expect("(")?;
        let mut parameters = 0;
        if !self.at_sign(")") {
            loop {
                if self.at_sign("...") {
                    return Err(self.unsupported("function with '...'"));
                }
                let name = self.name()?;
                self.declare(name)?;
                parameters += 1;
                if !self.accept(",")? {
                    break;
                }
            }
        }
        self.expect(")")?;
        let body = self.block()?;
        self.expect_end("end", "function", line)?;
        let frame = self.scope.leave_function();
        if let Some(place) = self.functions.get_mut(index) {
            *place = Function {
                parameters,
                frame,
                body,
            };
        }
        Ok(Statement::Function)
    }

    fn returned(&mut self) -> Result<Statement, CompileError> {
        self.advance()?;
        let empty = self.at_block_end() || self.at_sign(";");
        let values = if empty {
            Vec::new()
        } else {
            self.expressions()?
        };
        Ok(Statement::Return(values))
    }

    fn expression_statement(&mut self) -> Result<Statement, CompileError> {
        let line = self.line;
        let first = self.suffixed()?;
        if let Expression::Call(call) = first {
            return Ok(Statement::Call(*call));
        }
        let mut targets = vec![self.target(first)?];
        while self.accept(",")? {
            let next = self.suffixed()?;
            targets.push(self.target(next)?);
        }
        self.expect("=")?;
        let values = self.expressions()?;
        Ok(Statement::Assign {
            targets,
            values,
            line,
        })
    }

    fn target(&self, expression: Expression) -> Result<Target, CompileError> {
        Ok(match expression {
            Expression::Local { slot, .. } => Target::Local(slot),
            Expression::Outer { slot, .. } => Target::Outer(slot),
            Expression::Missing { .. } | Expression::Input(_) => Target::Global,
            Expression::Index(index) => Target::Index {
                base: index.base,
                key: index.key,
                line: index.line,
            },
            Expression::Builtin(_) => return Err(self.unsupported("assignment to a library")),
            _ => return Err(self.error("syntax error")),
        })
    }
}

/// A call as a statement or an expression.
impl From<Call> for Expression {
    fn from(call: Call) -> Self {
        Self::Call(Box::new(call))
    }
}

/// The longest script. Lock scripts are below 2 KiB; the largest known one that needs only strings
/// has 1018 bytes. The limit bounds the tree that one client can make the node keep.
pub(super) const SOURCE_BYTES_MAX: usize = 64 * 1024;

/// The deepest nesting of blocks and expressions: Lua 5.1's own limit.
const LEVELS_MAX: usize = 200;
