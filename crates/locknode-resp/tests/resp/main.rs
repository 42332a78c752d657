//! Bytes in, requests and replies out.
//!
//! * `corpus`: inputs and what Redis makes of them; the driver that feeds a decoder in pieces.
//! * `errors`: the text of every protocol error, as Redis 7.0.15 and 8.0.6 send it.
//! * `requests`: valid requests, whole and in pieces, against `redis-protocol` as the oracle.
//! * `replies`: what the encoder writes, read by our reply decoder and by `redis-protocol`.

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod replies;
#[cfg(test)]
mod requests;
