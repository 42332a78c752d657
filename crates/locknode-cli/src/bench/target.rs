//! A server to be measured, and what is known of it before.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use locknode_resp::Reply;

use super::flags::BenchFlags;
use super::process::Process;
use super::workload::{
    EXTEND_SCRIPT, LibraryScript, Material, NUMBER_LEN, REDISSON_ACQUIRE, REDISSON_UNLOCK,
    RELEASE_SCRIPT, ScriptShas, Workload,
};
use crate::failure::Failure;
use crate::json::Object;
use crate::server_address::ServerAddress;
use crate::server_connection::{ServerConnection, printable};
use crate::server_info::ServerInfo;

/// A server that answered.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) address: ServerAddress,
    pub(super) name: String,
    pub(super) version: String,
    /// The server's process, whose CPU time is read, or why it is not known.
    pub(super) process: Result<Process, String>,
    scripts: ScriptShas,
    /// Distinguishes a run of a server from all others.
    run_id: Option<String>,
}

impl Target {
    /// Asks a server who it is and loads the scripts of the workload.
    ///
    /// # Errors
    ///
    /// When it cannot be measured, and why.
    pub(super) fn prepare(address: ServerAddress, workload: Workload) -> Result<Self, Failure> {
        Self::ask(&address, workload)
            .map_err(|reason| Failure::unavailable(format!("{address}: {reason}")))
    }

    fn ask(address: &ServerAddress, workload: Workload) -> Result<Self, String> {
        let mut connection = ServerConnection::open(address, Instant::now() + PREPARATION_MAX)?;
        let info = ServerInfo::ask(&mut connection)?;
        if let Some(seconds) = info.quarantine_seconds() {
            return Err(format!(
                "it is in its restart quarantine, {seconds} s left: wait, or, if no node in its place has ever granted a \
                 lock, start it with --first-start"
            ));
        }
        if info.text("loading") == Some("1") {
            return Err("it is loading its data: wait until it serves".to_owned());
        }
        let process = if connection.stays_on_this_machine() {
            Process::of_server(&info, address)
        } else {
            Err("it runs on another machine".to_owned())
        };
        let mut target = Self::new(&info, address.clone(), process);
        let scripts = &mut target.scripts;
        if workload == Workload::CycleRedisson {
            scripts.redisson_acquire = find_script(&mut connection, REDISSON_ACQUIRE)?;
            scripts.redisson_unlock = find_script(&mut connection, REDISSON_UNLOCK)?;
        } else if workload.needs_scripts() {
            scripts.release = load_script(&mut connection, RELEASE_SCRIPT)?;
            scripts.extend = load_script(&mut connection, EXTEND_SCRIPT)?;
        }
        Ok(target)
    }

    /// What INFO says of a server, and no scripts.
    pub(super) fn new(
        info: &ServerInfo,
        address: ServerAddress,
        process: Result<Process, String>,
    ) -> Self {
        let (name, version) = info.server();
        Self {
            address,
            name: name.to_owned(),
            version: version.to_owned(),
            process,
            scripts: ScriptShas::default(),
            run_id: info.text("run_id").map(str::to_owned),
        }
    }

    /// What it is called in results: its name, its version and where it is.
    pub(super) fn title(&self) -> String {
        let (space, version) = match self.version.as_str() {
            "" => ("", ""),
            version => (" ", version),
        };
        format!("{}{space}{version} on {}", self.name, self.address)
    }

    pub(super) fn json(&self) -> Object {
        Object::default()
            .text("name", &self.name)
            .text("version", &self.version)
            .text("address", &self.address.to_string())
    }

    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        let is_same_run = self.run_id.is_some() && self.run_id == other.run_id;
        is_same_run || self.address.to_string() == other.address.to_string()
    }

    /// What connections send it, on keys that no earlier run used: those may still be held.
    pub(super) fn material(&self, flags: &BenchFlags) -> Material {
        let run = random_digits();
        let prefix_len = usize::try_from(flags.key_size)
            .unwrap_or(0)
            .saturating_sub(NUMBER_LEN);
        let pad_len = prefix_len.saturating_sub(RUN_LEN);
        let mut key_prefix: Vec<u8> = b"lock::".iter().copied().cycle().take(pad_len).collect();
        key_prefix.extend_from_slice(&run.as_bytes()[..RUN_LEN]);
        let token_len = usize::try_from(flags.token_size).unwrap_or(usize::MAX);
        Material {
            key_prefix,
            token: run.bytes().cycle().take(token_len).collect(),
            ttl_ms: u64::try_from(flags.ttl.as_millis()).unwrap_or(u64::MAX),
            scripts: self.scripts.clone(),
        }
    }
}

/// Returns the SHA1 by which a library's script runs.
fn find_script(connection: &mut ServerConnection, script: LibraryScript) -> Result<String, String> {
    let known = connection.call(&[b"SCRIPT", b"EXISTS", script.sha.as_bytes()])?;
    if known == Reply::Array(vec![Reply::Integer(1)]) {
        return Ok(script.sha.to_owned());
    }
    load_script(connection, script.text)
}

fn load_script(connection: &mut ServerConnection, script: &str) -> Result<String, String> {
    let reason = match connection.call(&[b"SCRIPT", b"LOAD", script.as_bytes()])? {
        Reply::Bulk(sha) if sha.len() == SHA_LEN => {
            return Ok(String::from_utf8_lossy(&sha).into_owned());
        }
        Reply::Error(error) => format!(" {};", printable(&error)),
        _ => String::new(),
    };
    Err(format!(
        "it does not answer SCRIPT LOAD:{reason} choose another --workload"
    ))
}

/// Sixteen hexadecimal digits that differ from run to run; the standard library seeds its hash tables with them.
fn random_digits() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

/// Connecting, INFO and SCRIPT LOAD together.
const PREPARATION_MAX: Duration = Duration::from_secs(5);

/// Digits that distinguish the keys of this run from those of others.
const RUN_LEN: usize = 8;

/// Hexadecimal digits of a SHA1.
const SHA_LEN: usize = 40;
