//! What clients believe to hold, and whether it is so.

use crate::core::OpId;
use crate::core::tests::server::Server;
use crate::token::Token;

/// One client's belief in one lock.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) client: usize,
    pub(super) op: OpId,
    pub(super) key: Vec<u8>,
    pub(super) token: Token,
    /// In true time.
    pub(super) until: u64,
}

/// All beliefs that were not given up. Those whose time is over stay until their holder says so.
#[derive(Clone, Default, Debug)]
pub(super) struct Claims {
    all: Vec<Claim>,
    /// Locks end before their time: nobody is excluded, and nothing can be said.
    is_hostile: bool,
}

impl Claims {
    pub(super) fn new(is_hostile: bool) -> Self {
        let all = Vec::new();
        Self { all, is_hostile }
    }

    /// A client was told that it holds a lock.
    pub(super) fn begin(&mut self, now: u64, claim: Claim) -> Result<(), String> {
        if claim.until <= now {
            return Err(format!("acquired without validity: {claim:?}"));
        }
        self.all.push(claim);
        self.exclude(now)
    }

    /// A client was told another end of its lock.
    pub(super) fn change(
        &mut self,
        now: u64,
        client: usize,
        op: OpId,
        until: u64,
    ) -> Result<(), String> {
        let claim = self
            .get_mut(client, op)
            .ok_or_else(|| format!("a new validity for no lock: {client} {op:?}"))?;
        if claim.until <= now && until > now {
            return Err(format!(
                "a lock that had ended came back: {claim:?} until {until}"
            ));
        }
        claim.until = until;
        self.exclude(now)
    }

    /// The client does not believe in it any more.
    pub(super) fn end(&mut self, client: usize, op: OpId) -> Option<Claim> {
        let i = self
            .all
            .iter()
            .position(|claim| claim.client == client && claim.op == op)?;
        Some(self.all.swap_remove(i))
    }

    pub(super) fn end_all_of(&mut self, client: usize) {
        self.all.retain(|claim| claim.client != client);
    }

    pub(super) fn of(&self, client: usize) -> impl Iterator<Item = &Claim> {
        self.all.iter().filter(move |claim| claim.client == client)
    }

    pub(super) fn get_mut(&mut self, client: usize, op: OpId) -> Option<&mut Claim> {
        self.all
            .iter_mut()
            .find(|claim| claim.client == client && claim.op == op)
    }

    /// No two clients believe in the same lock at the same time.
    fn exclude(&self, now: u64) -> Result<(), String> {
        if self.is_hostile {
            return Ok(());
        }
        for (i, one) in self.all.iter().enumerate() {
            for other in &self.all[i + 1..] {
                if one.key == other.key && one.until > now && other.until > now {
                    return Err(format!("two holders: {one:?} and {other:?}"));
                }
            }
        }
        Ok(())
    }

    /// Whoever believes in a lock has a majority of the nodes that hold it to the end, or restarted since and take
    /// no part so long.
    pub(super) fn check(&self, now: u64, servers: &[Server], needed: usize) -> Result<(), String> {
        let believed = self.all.iter().filter(|claim| claim.until > now);
        for claim in believed.filter(|_| !self.is_hostile) {
            let keeps = |server: &&Server| {
                let held = server.held(now, &claim.key);
                server.quarantined_until >= claim.until
                    || held.is_some_and(|held| {
                        held.token == claim.token.as_ref() && held.deadline >= claim.until
                    })
            };
            if servers.iter().filter(keeps).count() < needed {
                return Err(format!("no majority holds it: {claim:?}"));
            }
        }
        Ok(())
    }
}
