//! The tree of a script that may be a lock script.

/// A list of statements.
pub(super) type Block<'s> = Vec<Statement<'s>>;

#[derive(Debug)]
pub(super) enum Statement<'s> {
    /// New locals, from `slot` on; without values they are nil.
    Local {
        slot: usize,
        count: usize,
        values: Vec<Expression<'s>>,
    },
    Assign {
        slot: usize,
        value: Expression<'s>,
    },
    Call(Vec<Expression<'s>>),
    Do(Block<'s>),
    If {
        arms: Vec<(Expression<'s>, Block<'s>)>,
        otherwise: Block<'s>,
    },
    Return(Option<Expression<'s>>),
}

#[derive(Debug)]
pub(super) enum Expression<'s> {
    Nil,
    True,
    False,
    Number(i64),
    Text(&'s [u8]),
    Local(usize),
    /// `KEYS[n]`.
    Key(i64),
    /// `ARGV[n]`.
    Argument(i64),
    /// `redis.call(...)`.
    Call(Vec<Self>),
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Compare(&'static str, Box<Self>, Box<Self>),
}
