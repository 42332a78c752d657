//! Transactions, which the node lacks: MULTI, EXEC, DISCARD, WATCH and UNWATCH.
//!
//! A client sends MULTI, its commands and EXEC without waiting for replies in between. After a
//! refused MULTI none of them is executed, because that would be outside any transaction.

use locknode_resp::Encoder;

use super::context::Context;
use super::refusal;
use super::spec::{Call, Flags, Keys, Spec, exact, specs};

fn multi(context: &mut Context<'_, '_>, _: &[&[u8]; 1], reply: &mut Encoder<'_>) {
    if context.session.transaction.is_some() {
        return reply.error("ERR MULTI calls can not be nested");
    }
    context.session.set_transaction(Some(Box::default()));
    refusal::unsupported(reply, NO_TRANSACTIONS);
}

fn exec(context: &mut Context<'_, '_>, _: &[&[u8]; 1], reply: &mut Encoder<'_>) {
    if context.session.set_transaction(None).is_some() {
        return reply.error(
            "EXECABORT Transaction discarded because this node has no MULTI; nothing was executed",
        );
    }
    reply.error("ERR EXEC without MULTI");
}

fn discard(context: &mut Context<'_, '_>, _: &[&[u8]; 1], reply: &mut Encoder<'_>) {
    if context.session.set_transaction(None).is_some() {
        return refusal::unsupported(reply, NO_TRANSACTIONS);
    }
    reply.error("ERR DISCARD without MULTI");
}

fn watch(context: &mut Context<'_, '_>, _: &[&[u8]], reply: &mut Encoder<'_>) {
    if context.session.transaction.is_some() {
        return reply.error("ERR WATCH inside MULTI is not allowed");
    }
    refusal::unsupported(reply, NO_TRANSACTIONS);
}

const NO_TRANSACTIONS: &str = "transactions (MULTI, WATCH): nothing up to EXEC or DISCARD is executed. Use a pipeline \
    without MULTI, SET with NX or IFEQ, DELEX with IFEQ, MSETNX, or a script";

const TRANSACTION: Spec = Spec {
    since: "1.2.0",
    ..Spec::of(
        exact!(multi),
        Flags::FAST
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::TRANSACTION),
        Keys::None,
        "transactions",
    )
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Refused, with everything up to EXEC or DISCARD: there are no transactions.
    "multi", ..TRANSACTION;

    /// Ends a refused transaction, of which nothing was executed.
    "exec", call: exact!(exec), ..TRANSACTION;

    /// Ends a refused transaction, of which nothing was executed.
    "discard" since "2.0.0", call: exact!(discard), ..TRANSACTION;

    /// Refused: there are no transactions.
    "watch" "key [key ...]" since "2.2.0", call: Call::any(-2, watch), ..TRANSACTION;

    /// Does nothing: no key is ever watched.
    "unwatch" since "2.2.0",
        call: Call::any(1, |_, _, reply| reply.ok()),
        flags: Flags::FAST.and(Flags::NOSCRIPT).and(Flags::LOADING), ..TRANSACTION;
};
