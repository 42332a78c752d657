//! The registry of connected clients, for CLIENT LIST and CLIENT KILL.
//!
//! The registry closes nothing itself. It marks a client as killed and wakes the task that drives
//! the connection through the [`Waker`] that the task left.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::command_id::CommandId;
#[cfg(feature = "compat")]
use crate::mailbox::Mailbox;
use crate::options::Options;
use crate::settings::Settings;
use crate::time::Time;
#[cfg(feature = "acl")]
use crate::users::Account;
use crate::users::Users;
#[cfg(feature = "compat")]
use crate::wake_queue::WakeQueue;

/// The addresses of a connection, in the form of CLIENT LIST.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// The client's end: `ip:port`, or the socket's path followed by `:0`.
    pub addr: String,
    /// The node's end, in the same form.
    pub laddr: String,
    /// The descriptor number; 0 when there is none.
    pub fd: u32,
}

/// The registry's record of one connection.
pub struct Client {
    pub(crate) id: u64,
    pub(crate) addr: Box<str>,
    pub(crate) laddr: Box<str>,
    pub(crate) fd: u32,
    pub(crate) connected: Time,
    names: Mutex<ClientNames>,
    /// Who has logged in; `None` for the user `default`.
    #[cfg(feature = "acl")]
    pub(super) account: Mutex<Option<Arc<Account>>>,
    pub(crate) db: AtomicU8,
    pub(crate) protocol: AtomicU8,
    pub(crate) is_no_evict: AtomicBool,
    pub(crate) is_no_touch: AtomicBool,
    /// Whether a key that the client watches has changed.
    pub(crate) is_touched: AtomicBool,
    /// One plus the number of commands queued since MULTI; 0 without.
    queued: AtomicU32,
    watched: AtomicU32,
    /// The low half holds the number of the last command. The high half holds one plus the number
    /// of its subcommand, or zero, and its highest bit is set while the next command waits for the
    /// end of a pause. One word, so that running a command resets it all in one store.
    last_command: AtomicU32,
    pub(crate) commands: AtomicU64,
    pub(crate) last_seen: AtomicU64,
    /// See [`Client::note_buffers`].
    buffered: AtomicU64,
    #[cfg(feature = "compat")]
    pub(super) mailbox: Mailbox,
    /// How many channels, patterns and shard channels the client is subscribed to.
    pub(crate) subscriptions: [AtomicU32; 3],
    pub(super) killed: AtomicBool,
    waker: Mutex<Option<Waker>>,
    pub(super) registry: Arc<Clients>,
}

/// The names that a client set, in one allocation: most drivers set two, and ten thousand idle
/// connections must be cheap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientNames {
    bytes: Box<[u8]>,
    ends: [u16; NameKind::ALL.len()],
}

/// One of a client's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameKind {
    /// The connection's own: CLIENT SETNAME.
    Connection,
    /// The client library's: CLIENT SETINFO LIB-NAME.
    Library,
    /// The client library's version: CLIENT SETINFO LIB-VER.
    LibraryVersion,
}

/// The command that a client ran last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastCommand {
    /// Its place in the table of commands.
    pub(crate) command: usize,
    /// Its subcommand's place in the container's table.
    pub(crate) subcommand: Option<usize>,
}

/// All connected clients.
pub(crate) struct Clients {
    pub(super) settings: Arc<Settings>,
    #[cfg_attr(
        not(any(feature = "acl", feature = "hand-over")),
        expect(dead_code, reason = "there is one user")
    )]
    pub(super) users: Arc<Users>,
    clients: Mutex<HashMap<u64, Arc<Client>, foldhash::fast::FixedState>>,
    count: AtomicU64,
    next_id: AtomicU64,
    accepted: AtomicU64,
    /// What the buffers and the mailboxes of all clients use.
    pub(super) buffered: AtomicU64,
    evicted: AtomicU64,
    #[cfg(feature = "compat")]
    pub(super) wake_queue: WakeQueue<Arc<Client>>,
}

impl Client {
    /// Returns the number that CLIENT ID replies.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Returns whether the connection must be closed without another reply.
    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }

    /// Returns how long ago the connection's last batch of commands was, at `now`.
    pub fn idle(&self, now: Time) -> Duration {
        now.since(Time::from_nanos(self.last_seen.load(Ordering::Relaxed)))
    }

    /// Marks the connection for closing and wakes the task that drives it.
    pub fn kill(&self) {
        self.killed.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Notes that the connection's buffers use `bytes`, and closes those that use most if all
    /// together exceed `maxmemory-clients`.
    ///
    /// Call this when the number has changed. What every connection needs may be left out.
    pub fn note_buffers(&self, bytes: u64) {
        let (registry, before) = (&self.registry, self.buffered.load(Ordering::Relaxed));
        self.buffered.store(bytes, Ordering::Relaxed);
        if bytes <= before {
            let freed = before - bytes;
            registry.buffered.fetch_sub(freed, Ordering::Relaxed);
        } else {
            let added = bytes - before;
            registry.buffered.fetch_add(added, Ordering::Relaxed);
            registry.evict();
        }
    }

    /// Returns whether the connection has been sent something.
    #[cfg(not(feature = "compat"))]
    pub fn has_mail(&self) -> bool {
        false
    }

    /// Moves what the connection was sent to the end of `out`: nothing.
    #[cfg(not(feature = "compat"))]
    pub fn take_mail(&self, _: &mut Vec<u8>, _: usize) {}

    /// Returns whether the client is subscribed to anything.
    pub(crate) fn is_subscriber(&self) -> bool {
        let is_some = |count: &AtomicU32| count.load(Ordering::Relaxed) != 0;
        self.subscriptions.iter().any(is_some)
    }

    /// Stores the waker of the task that drives the connection; called before the task sleeps.
    pub fn sleep_with(&self, waker: &Waker) {
        let mut slot = self.waker.lock();
        if !slot.as_ref().is_some_and(|old| old.will_wake(waker)) {
            *slot = Some(waker.clone());
        }
    }

    /// Notes that the connection ran `commands` more commands at `now`; called once per batch.
    #[inline]
    pub(crate) fn note(&self, now: Time, commands: u64) {
        self.last_seen.store(now.as_nanos(), Ordering::Relaxed);
        let before = self.commands.load(Ordering::Relaxed);
        self.commands
            .store(before.wrapping_add(commands), Ordering::Relaxed);
    }

    /// Notes the command just run, for the `cmd` field of CLIENT LIST.
    #[inline]
    pub(crate) fn note_command(&self, id: CommandId) {
        self.last_command.store(id.number(), Ordering::Relaxed);
    }

    /// Notes the subcommand of the command just noted.
    pub(crate) fn note_subcommand(&self, index: usize) {
        let command = self.last_command.load(Ordering::Relaxed) & COMMAND_MASK;
        let subcommand = u32::try_from(index + 1).unwrap_or(0) << COMMAND_BITS;
        self.last_command
            .store(command | subcommand, Ordering::Relaxed);
    }

    /// Notes that the client waits for the end of a pause or for an element of a list; running a command
    /// resets this.
    pub(crate) fn note_waiting(&self) {
        self.last_command.fetch_or(WAITING, Ordering::Relaxed);
    }

    /// Notes that the wait for an element has ended.
    #[cfg(feature = "compat")]
    pub(crate) fn note_wait_ended(&self) {
        self.last_command.fetch_and(!WAITING, Ordering::Relaxed);
    }

    /// Returns whether the client waits for the end of a pause or for an element.
    pub(crate) fn is_waiting(&self) -> bool {
        self.last_command.load(Ordering::Relaxed) & WAITING != 0
    }

    /// Returns the last command; `None` before the first.
    pub(crate) fn last_command(&self) -> Option<LastCommand> {
        let word = self.last_command.load(Ordering::Relaxed) & !WAITING;
        let place = |number: u32| usize::try_from(number).ok();
        (word != NO_COMMAND).then_some(())?;
        Some(LastCommand {
            command: place(word & COMMAND_MASK)?,
            subcommand: (word >> COMMAND_BITS).checked_sub(1).and_then(place),
        })
    }

    /// Notes how many commands the client has queued since MULTI, if it has sent that.
    pub(crate) fn note_queued(&self, commands: Option<usize>) {
        let queued = commands.map_or(0, |count| u32::try_from(count + 1).unwrap_or(u32::MAX));
        self.queued.store(queued, Ordering::Relaxed);
    }

    /// Returns how many commands the client has queued since MULTI, if it has sent that.
    pub(crate) fn queued(&self) -> Option<u32> {
        self.queued.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Notes how many keys the client watches.
    #[cfg(feature = "compat")]
    pub(crate) fn note_watched(&self, keys: usize) {
        let watched = u32::try_from(keys).unwrap_or(u32::MAX);
        self.watched.store(watched, Ordering::Relaxed);
    }

    /// Returns how many keys the client watches.
    pub(crate) fn watched(&self) -> u32 {
        self.watched.load(Ordering::Relaxed)
    }

    /// Returns one of the client's names; empty without one.
    pub(crate) fn name(&self, kind: NameKind) -> Vec<u8> {
        self.names.lock().of(kind).to_vec()
    }

    /// Replaces one of the client's names; returns `false` without a change beyond [`NAME_LEN_MAX`]
    /// bytes.
    pub(crate) fn rename(&self, kind: NameKind, name: &[u8]) -> bool {
        let mut names = self.names.lock();
        let Some(changed) = names.with(kind, name) else {
            return false;
        };
        *names = changed;
        true
    }

    pub(crate) fn wake(&self) {
        let waker = self.waker.lock().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Removes the client from the registry.
    pub(crate) fn leave(&self) {
        if self.registry.clients.lock().remove(&self.id).is_some() {
            self.note_buffers(0);
            self.killed.store(true, Ordering::Relaxed);
            #[cfg(feature = "compat")]
            self.discard_mail();
            self.registry.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("id", &self.id)
            .field("addr", &self.addr)
            .finish_non_exhaustive()
    }
}

impl Clients {
    /// Creates a registry that obeys the options about clients in `settings`.
    pub(crate) fn new(settings: Arc<Settings>, users: Arc<Users>) -> Arc<Self> {
        Arc::new(Self {
            settings,
            users,
            clients: Mutex::default(),
            count: AtomicU64::new(0),
            next_id: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            buffered: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            #[cfg(feature = "compat")]
            wake_queue: WakeQueue::default(),
        })
    }

    #[cfg(feature = "hand-over")]
    pub(crate) fn asks_for_password(&self) -> bool {
        self.users.needs_login()
    }

    /// Registers a connection unless `maxclients` are already there.
    pub(crate) fn enter(self: &Arc<Self>, peer: Peer, now: Time) -> Option<Arc<Client>> {
        let clients_max = self.settings.read(|options| options.maxclients);
        let mut clients = self.clients.lock();
        if self.count.load(Ordering::Relaxed) >= clients_max {
            return None;
        }
        let client = Arc::new(Client {
            id: self.next_id.fetch_add(1, Ordering::Relaxed) + 1,
            addr: peer.addr.into_boxed_str(),
            laddr: peer.laddr.into_boxed_str(),
            fd: peer.fd,
            connected: now,
            names: Mutex::default(),
            #[cfg(feature = "acl")]
            account: Mutex::default(),
            db: AtomicU8::new(0),
            protocol: AtomicU8::new(2),
            is_no_evict: AtomicBool::new(false),
            is_no_touch: AtomicBool::new(false),
            is_touched: AtomicBool::new(false),
            queued: AtomicU32::new(0),
            watched: AtomicU32::new(0),
            last_command: AtomicU32::new(NO_COMMAND),
            commands: AtomicU64::new(0),
            last_seen: AtomicU64::new(now.as_nanos()),
            buffered: AtomicU64::new(0),
            #[cfg(feature = "compat")]
            mailbox: Mailbox::default(),
            subscriptions: Default::default(),
            killed: AtomicBool::new(false),
            waker: Mutex::new(None),
            registry: Arc::clone(self),
        });
        clients.insert(client.id, Arc::clone(&client));
        self.count.fetch_add(1, Ordering::Relaxed);
        self.accepted.fetch_add(1, Ordering::Relaxed);
        Some(client)
    }

    /// Closes connections that have been idle for longer than `timeout`, those that use most beyond
    /// `maxmemory-clients`, and those that have left much of what they were sent for long.
    pub(crate) fn enforce_limits(&self, now: Time) {
        self.evict();
        let (timeout, limit) = self.settings.read(|options| {
            let limits = options.client_output_buffer_limit;
            (options.timeout, limits.pubsub)
        });
        if timeout != 0 {
            // As in Redis, subscribers may be idle.
            let is_idle = |client: &Client| client.idle(now).as_secs() > timeout;
            let is_closed = |client: &&Arc<Client>| is_idle(client) && !client.is_subscriber();
            self.all()
                .iter()
                .filter(is_closed)
                .for_each(|client| client.kill());
        }
        #[cfg(feature = "compat")]
        {
            // A task that ended while it was woken has passed nothing on.
            self.wake_all_in_turn();
            if self.buffered() > limit.soft_size() as u64 {
                let all = self.all();
                let slow = all.iter().filter(|client| client.is_slow(limit, now));
                slow.for_each(|client| client.kill());
            }
        }
        let _ = limit;
    }

    /// Wakes the next connection of those that wait for their turn: none.
    #[cfg(not(feature = "compat"))]
    pub(crate) fn wake_next(&self) {}

    /// Returns the number of connections.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the number of connections accepted since the start.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Returns what the buffers of all clients use.
    pub(crate) fn buffered(&self) -> u64 {
        self.buffered.load(Ordering::Relaxed)
    }

    /// Returns the number of connections closed for `maxmemory-clients` since the start.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Returns the number of connections whose next command waits for the end of a pause.
    pub(crate) fn waiting(&self) -> usize {
        self.clients
            .lock()
            .values()
            .filter(|client| client.is_waiting())
            .count()
    }

    /// Returns the number of connections that watch keys.
    pub(crate) fn watching(&self) -> usize {
        let clients = self.clients.lock();
        clients
            .values()
            .filter(|client| client.watched() > 0)
            .count()
    }

    /// Returns the number of clients that are subscribed to something.
    pub(crate) fn subscribers(&self) -> usize {
        let clients = self.clients.lock();
        clients.values().filter(|it| it.is_subscriber()).count()
    }

    /// Returns the most keys that are remembered for tracking clients.
    #[cfg(feature = "compat")]
    pub(crate) fn tracked_keys_max(&self) -> usize {
        match self
            .settings
            .read(|options| options.tracking_table_max_keys)
        {
            0 => usize::MAX,
            max => usize::try_from(max).unwrap_or(usize::MAX),
        }
    }

    /// Returns the client with that id.
    pub(crate) fn find(&self, id: u64) -> Option<Arc<Client>> {
        self.clients.lock().get(&id).cloned()
    }

    /// Returns all clients by ascending id.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        let mut all: Vec<_> = self.clients.lock().values().cloned().collect();
        all.sort_unstable_by_key(|client| client.id);
        all
    }

    /// Wakes every connection's task, so that it checks the pause again.
    pub(crate) fn wake_all(&self) {
        self.all().iter().for_each(|client| client.wake());
    }

    /// Wakes the tasks of the connections whose next command waits.
    #[cfg(feature = "compat")]
    pub(crate) fn wake_waiting(&self) {
        let all = self.all();
        let waiting = all.iter().filter(|client| client.is_waiting());
        waiting.for_each(|client| client.wake());
    }

    /// Closes the connections whose buffers use most, until the others keep `maxmemory-clients`.
    pub(super) fn evict(&self) {
        let used = self.buffered.load(Ordering::Relaxed);
        let max = self.settings.read(Options::client_memory_max);
        let Some(max) = max.filter(|max| used > *max) else {
            return;
        };
        let clients = self.clients.lock().values().cloned().collect::<Vec<_>>();
        let mut users: Vec<_> = clients
            .iter()
            .map(|client| {
                let bytes = client.buffered.load(Ordering::Relaxed);
                #[cfg(feature = "compat")]
                let bytes = bytes + client.mail_size();
                (bytes, client)
            })
            .filter(|(bytes, client)| *bytes > 0 && !client.is_killed())
            .collect();
        // Without those that are closing, which the registry still counts.
        let mut used: u64 = users.iter().map(|(bytes, _)| bytes).sum();
        users.sort_unstable_by_key(|(bytes, client)| (Reverse(*bytes), client.id));
        users.retain(|(_, client)| !client.is_no_evict.load(Ordering::Relaxed));
        for (bytes, client) in users {
            if used <= max {
                break;
            }
            used -= bytes;
            if !client.killed.swap(true, Ordering::Relaxed) {
                self.evicted.fetch_add(1, Ordering::Relaxed);
                client.wake();
            }
        }
    }
}

impl ClientNames {
    fn of(&self, kind: NameKind) -> &[u8] {
        let index = kind as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes
            .get(usize::from(start)..usize::from(self.ends[index]))
            .unwrap_or_default()
    }

    fn with(&self, kind: NameKind, name: &[u8]) -> Option<Self> {
        if name.len() > NAME_LEN_MAX {
            return None;
        }
        let mut bytes = Vec::new();
        let mut ends = self.ends;
        for (end, each) in ends.iter_mut().zip(NameKind::ALL) {
            bytes.extend_from_slice(if each == kind { name } else { self.of(each) });
            *end = u16::try_from(bytes.len()).ok()?;
        }
        Some(Self {
            bytes: bytes.into_boxed_slice(),
            ends,
        })
    }
}

impl NameKind {
    /// In the order in which they are stored.
    pub(crate) const ALL: [Self; 3] = [Self::Connection, Self::Library, Self::LibraryVersion];
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

/// The longest client name in bytes. Redis has no limit; names are short, and this bounds what a
/// connection can make the node keep.
pub(crate) const NAME_LEN_MAX: usize = 1024;

/// Commands are numbered in 16 bits.
const COMMAND_BITS: u32 = 16;
const COMMAND_MASK: u32 = (1 << COMMAND_BITS) - 1;

/// The next command waits for the end of a pause.
const WAITING: u32 = 1 << 31;

/// No command has run yet.
const NO_COMMAND: u32 = COMMAND_MASK;

const _: () = assert!(NameKind::ALL.len() * NAME_LEN_MAX <= u16::MAX as usize);

#[cfg(test)]
mod tests {
    use super::*;

    fn clients() -> Arc<Clients> {
        let settings = Settings::new(Options::default());
        #[cfg(feature = "acl")]
        let users = Users::new(None, crate::command::numbers::names());
        #[cfg(not(feature = "acl"))]
        let users = Users::new();
        Clients::new(Arc::new(settings), Arc::new(users))
    }

    #[test]
    fn names_are_separate_and_bounded() {
        let clients = clients();
        let client = clients.enter(Peer::default(), Time::ZERO).expect("room");
        let names =
            || NameKind::ALL.map(|kind| String::from_utf8(client.name(kind)).expect("text"));
        assert_eq!(names(), ["", "", ""]);
        assert!(client.rename(NameKind::Library, b"driver"));
        assert!(client.rename(NameKind::Connection, b"worker-1"));
        assert!(client.rename(NameKind::LibraryVersion, b"1.2"));
        assert_eq!(names(), ["worker-1", "driver", "1.2"]);
        assert!(client.rename(NameKind::Library, b""));
        assert_eq!(names(), ["worker-1", "", "1.2"]);
        assert!(client.rename(NameKind::Library, &[b'a'; NAME_LEN_MAX]));
        assert!(!client.rename(NameKind::Connection, &[b'a'; NAME_LEN_MAX + 1]));
        assert_eq!(client.name(NameKind::Connection), b"worker-1");
    }

    #[test]
    fn the_last_command_is_remembered_through_a_wait() {
        let clients = clients();
        let client = clients.enter(Peer::default(), Time::ZERO).expect("room");
        assert_eq!(client.last_command(), None);
        client.note_waiting();
        assert_eq!((client.last_command(), clients.waiting()), (None, 1));
        let (id, _) = crate::command::Commands::new()
            .find(b"client")
            .expect("CLIENT");
        client.note_command(id);
        let bare = LastCommand {
            command: id.index(),
            subcommand: None,
        };
        assert_eq!((client.last_command(), clients.waiting()), (Some(bare), 0));
        client.note_subcommand(4);
        client.note_waiting();
        let whole = LastCommand {
            subcommand: Some(4),
            ..bare
        };
        assert_eq!((client.last_command(), clients.waiting()), (Some(whole), 1));
    }

    #[test]
    fn buffers_count_until_they_are_freed_or_their_client_leaves() {
        let clients = clients();
        let [a, b] = [(); 2].map(|()| clients.enter(Peer::default(), Time::ZERO).expect("room"));
        a.note_buffers(5_000);
        b.note_buffers(7_000);
        assert_eq!(clients.buffered(), 12_000);
        b.note_buffers(6_000);
        assert_eq!(clients.buffered(), 11_000);
        a.leave();
        assert_eq!(clients.buffered(), 6_000);
    }

    #[test]
    fn the_record_of_a_connection_is_small() {
        // Who it is takes two words more.
        let max = if cfg!(feature = "acl") { 232 } else { 216 };
        assert!(size_of::<Client>() <= max, "{} bytes", size_of::<Client>());
    }
}
