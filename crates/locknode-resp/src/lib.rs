//! The Redis wire protocol for lock nodes: requests and replies as bytes, nothing else.
//!
//! * [`Decoder`] turns received bytes into [`Frame`]s: arrays of bulk strings and inline commands,
//!   as borrowed slices, resumable at any byte, without recursion and without allocating per
//!   command.
//! * [`Encoder`] appends replies in RESP2 or RESP3.
//! * [`encode_command`] and [`ReplyDecoder`] are the client's half.
//!
//! It is neither a server nor a client: it opens no sockets, reads no clocks and knows no commands.
//! Limits are arguments ([`Limits`], [`ReplyLimits`]), and bad input is an error
//! ([`ProtocolError`], [`ReplyError`]), never a panic or memory that the peer only announced.
//!
//! ```
//! use locknode_resp::{Decoder, Encoder, Limits, Protocol};
//!
//! # fn main() -> Result<(), locknode_resp::ProtocolError> {
//! let input = b"*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\nPING\r\n";
//! let (mut decoder, mut output, mut start) = (Decoder::new(), Vec::new(), 0);
//! while let Some(frame) = decoder.decode(&input[start..], &Limits::default(), true)? {
//!     start += frame.consumed();
//!     let mut reply = Encoder::new(&mut output, Protocol::Resp2);
//!     match frame.arg(1) {
//!         Some(message) => reply.bulk(message),
//!         None => reply.simple("PONG"),
//!     }
//! }
//! assert_eq!(output, b"$2\r\nhi\r\n+PONG\r\n");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod command;
mod decimal;
mod decoder;
mod encoder;
mod frame;
mod inline;
mod limits;
mod number;
mod protocol;
mod protocol_error;
mod reply;
mod reply_decoder;
mod reply_error;
mod reply_limits;
mod short_args;

pub use command::encode_command;
pub use decimal::{first_eight, parse_integer};
pub use decoder::Decoder;
pub use encoder::Encoder;
pub use frame::{Args, Frame};
pub use limits::Limits;
pub use number::double_text;
pub use protocol::Protocol;
pub use protocol_error::{ProtocolError, ProtocolErrorKind};
pub use reply::Reply;
pub use reply_decoder::ReplyDecoder;
pub use reply_error::{ReplyError, ReplyErrorKind};
pub use reply_limits::ReplyLimits;
