//! The library functions that a native script may call, by name.
//!
//! This is only the list; `stdlib.rs` implements the functions. Anything in Redis's Lua that is not
//! in this list is refused before the script runs.

/// A library function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Builtin {
    Call,
    ProtectedCall,
    ErrorReply,
    StatusReply,
    Sha1Hex,
    ReplicateCommands,
    Log,
    ToNumber,
    ToString,
    Type,
    Unpack,
    TableInsert,
    TableCount,
    Floor,
    Ceil,
    Absolute,
    Maximum,
    Minimum,
    Substring,
    StringLength,
    Lower,
    Upper,
}

/// The meaning of a global name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Global {
    Builtin(Builtin),
    /// A table of functions, such as `redis`.
    Library,
    /// Redis has it, but native scripts do not.
    Unsupported,
    /// Redis does not have it either.
    Missing,
}

/// A field of a library.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Field {
    Builtin(Builtin),
    Number(f64),
}

/// Looks up a global other than `KEYS` and `ARGV`.
pub(super) fn global(name: &[u8]) -> Global {
    match name {
        b"tonumber" => Global::Builtin(Builtin::ToNumber),
        b"tostring" => Global::Builtin(Builtin::ToString),
        b"type" => Global::Builtin(Builtin::Type),
        b"unpack" => Global::Builtin(Builtin::Unpack),
        b"redis" | b"server" | b"table" | b"math" | b"string" | b"bit" | b"cjson" | b"cmsgpack"
        | b"struct" | b"os" | b"coroutine" => Global::Library,
        b"assert" | b"collectgarbage" | b"error" | b"gcinfo" | b"getmetatable" | b"ipairs"
        | b"load" | b"loadstring" | b"next" | b"pairs" | b"pcall" | b"rawequal" | b"rawget"
        | b"rawset" | b"select" | b"setmetatable" | b"xpcall" | b"_G" | b"_VERSION" => {
            Global::Unsupported
        }
        _ => Global::Missing,
    }
}

/// Looks up a field of a library; `None` when native scripts do not have it.
pub(super) fn field(library: &[u8], name: &[u8]) -> Option<Field> {
    let builtin = match (library, name) {
        (b"redis" | b"server", _) => return server_field(name),
        (b"table", b"insert") => Builtin::TableInsert,
        (b"table", b"getn") => Builtin::TableCount,
        (b"math", b"floor") => Builtin::Floor,
        (b"math", b"ceil") => Builtin::Ceil,
        (b"math", b"abs") => Builtin::Absolute,
        (b"math", b"max") => Builtin::Maximum,
        (b"math", b"min") => Builtin::Minimum,
        (b"math", b"huge") => return Some(Field::Number(f64::INFINITY)),
        (b"string", b"sub") => Builtin::Substring,
        (b"string", b"len") => Builtin::StringLength,
        (b"string", b"lower") => Builtin::Lower,
        (b"string", b"upper") => Builtin::Upper,
        _ => return None,
    };
    Some(Field::Builtin(builtin))
}

fn server_field(name: &[u8]) -> Option<Field> {
    Some(match name {
        b"call" => Field::Builtin(Builtin::Call),
        b"pcall" => Field::Builtin(Builtin::ProtectedCall),
        b"error_reply" => Field::Builtin(Builtin::ErrorReply),
        b"status_reply" => Field::Builtin(Builtin::StatusReply),
        b"sha1hex" => Field::Builtin(Builtin::Sha1Hex),
        b"replicate_commands" => Field::Builtin(Builtin::ReplicateCommands),
        b"log" => Field::Builtin(Builtin::Log),
        b"LOG_DEBUG" => Field::Number(0.0),
        b"LOG_VERBOSE" => Field::Number(1.0),
        b"LOG_NOTICE" => Field::Number(2.0),
        b"LOG_WARNING" => Field::Number(3.0),
        _ => return None,
    })
}

impl Builtin {
    /// The name in error texts.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::ProtectedCall => "pcall",
            Self::ErrorReply => "error_reply",
            Self::StatusReply => "status_reply",
            Self::Sha1Hex => "sha1hex",
            Self::ReplicateCommands => "replicate_commands",
            Self::Log => "log",
            Self::ToNumber => "tonumber",
            Self::ToString => "tostring",
            Self::Type => "type",
            Self::Unpack => "unpack",
            Self::TableInsert => "insert",
            Self::TableCount => "getn",
            Self::Floor => "floor",
            Self::Ceil => "ceil",
            Self::Absolute => "abs",
            Self::Maximum => "max",
            Self::Minimum => "min",
            Self::Substring => "sub",
            Self::StringLength => "len",
            Self::Lower => "lower",
            Self::Upper => "upper",
        }
    }
}
