//! The tree of a parsed script.
//!
//! Names are already resolved: a local is a slot of its function's frame, a library function is a
//! [`Builtin`], a function of the script is an index. What stays by name is only what error texts need.

use crate::script::builtin::Builtin;

/// A list of statements.
pub(super) type Block = Vec<Statement>;

/// A whole script.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) body: Block,
    /// How many slots the main frame needs.
    pub(super) frame: usize,
    pub(super) functions: Vec<Function>,
    /// Names of locals and globals, for error texts.
    pub(super) names: Vec<Box<[u8]>>,
}

/// A local function of the main chunk.
#[derive(Debug)]
pub(super) struct Function {
    /// Parameters take the first slots.
    pub(super) parameters: usize,
    pub(super) frame: usize,
    pub(super) body: Block,
}

#[derive(Debug)]
pub(super) enum Statement {
    /// New locals in consecutive slots.
    Local {
        slot: usize,
        count: usize,
        values: Vec<Expression>,
    },
    /// Where a local function is declared. It needs no work: calls name the function itself.
    Function,
    Assign {
        targets: Vec<Target>,
        values: Vec<Expression>,
        line: u32,
    },
    Call(Call),
    Do(Block),
    While {
        condition: Expression,
        body: Block,
    },
    Repeat {
        body: Block,
        until: Expression,
    },
    If {
        arms: Vec<(Expression, Block)>,
        otherwise: Option<Block>,
    },
    /// The numeric `for`.
    Count {
        slot: usize,
        range: Box<[Expression; 3]>,
        body: Block,
        line: u32,
    },
    /// The `for` over `ipairs` or `pairs`.
    Each {
        pairs: bool,
        over: Expression,
        slot: usize,
        count: usize,
        body: Block,
        line: u32,
    },
    Return(Vec<Expression>),
    Break,
}

#[derive(Debug)]
pub(super) enum Target {
    Local(usize),
    /// A local of the main chunk, seen from inside a function.
    Outer(usize),
    /// Redis forbids assigning to globals; the attempt is an error when it runs.
    Global,
    Index {
        base: Expression,
        key: Expression,
        line: u32,
    },
}

#[derive(Debug)]
pub(super) enum Expression {
    Nil,
    True,
    False,
    Number(f64),
    Text(Box<[u8]>),
    /// The list `KEYS` or `ARGV`.
    Input(Input),
    Local {
        slot: usize,
        name: usize,
    },
    Outer {
        slot: usize,
        name: usize,
    },
    /// A global that does not exist; reading it is an error when it runs.
    Missing {
        name: usize,
        line: u32,
    },
    Builtin(Builtin),
    Index(Box<Index>),
    Call(Box<Call>),
    /// Parentheses around something with several values: they keep the first.
    First(Box<Self>),
    Not(Box<Self>),
    Negate(Box<Self>, u32),
    Length(Box<Self>, u32),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Binary(Box<Binary>),
    Table(Vec<Item>, u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    Keys,
    Args,
}

#[derive(Debug)]
pub(super) struct Index {
    pub(super) base: Expression,
    pub(super) key: Expression,
    pub(super) line: u32,
}

#[derive(Debug)]
pub(super) struct Binary {
    pub(super) operator: Operator,
    pub(super) left: Expression,
    pub(super) right: Expression,
    pub(super) line: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Concatenate,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) callee: Callee,
    pub(super) arguments: Vec<Expression>,
    pub(super) line: u32,
}

#[derive(Debug)]
pub(super) enum Callee {
    Builtin(Builtin),
    /// A local function of the script, by its index in the chunk.
    Function(usize),
    /// Anything else, for instance a local that holds a builtin.
    Value(Expression),
}

#[derive(Debug)]
pub(super) enum Item {
    /// The next element of the list part.
    Next(Expression),
    Keyed(Expression, Expression),
}

impl Expression {
    /// Whether it may stand for any number of values.
    pub(super) fn is_multiple(&self) -> bool {
        matches!(self, Self::Call(_))
    }
}
