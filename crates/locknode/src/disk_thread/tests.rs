use std::sync::atomic::AtomicU8;

use locknode_engine::durable::{Durability, StoreSettings};
use locknode_engine::{EngineConfig, GuardConfig, GuardMode, GuardState, Peer};

use super::*;
use crate::clock::SystemClock;
use crate::directory::Directory;
use crate::machine_identity::machine_identity;

/// A directory whose writes and syncs fail on request.
#[derive(Debug)]
struct FailingDisk {
    directory: Directory,
    fault: Arc<AtomicU8>,
}

const WELL: u8 = 0;
const FULL: u8 = 1;
const NO_SYNC: u8 = 2;

impl FailingDisk {
    fn check(&self, fault: u8, kind: io::ErrorKind) -> io::Result<()> {
        if self.fault.load(Ordering::Acquire) == fault {
            Err(kind.into())
        } else {
            Ok(())
        }
    }
}

impl Disk for FailingDisk {
    fn list(&mut self) -> io::Result<Vec<String>> {
        self.directory.list()
    }

    fn read(&mut self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.directory.read(name)
    }

    fn create(&mut self, name: &str, len: u64) -> io::Result<()> {
        self.check(FULL, io::ErrorKind::StorageFull)?;
        self.directory.create(name, len)
    }

    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.check(FULL, io::ErrorKind::StorageFull)?;
        self.directory.write(name, offset, bytes)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.check(NO_SYNC, io::ErrorKind::Other)?;
        self.directory.sync(name)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.directory.remove(name)
    }

    fn sync_dir(&mut self) -> io::Result<()> {
        self.directory.sync_dir()
    }
}

/// `[G13]` `[G14]` Observers are notified when the disk gets into trouble and when it recovers,
/// without asking.
#[tokio::test]
async fn observers_are_notified_when_the_disk_fails_and_recovers() {
    let root = tempfile::tempdir().unwrap();
    let fault = Arc::<AtomicU8>::default();
    let disk = FailingDisk {
        directory: Directory::open(root.path()).unwrap(),
        fault: Arc::clone(&fault),
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let settings = StoreSettings {
        max_ttl: Duration::from_secs(60),
        durability: Durability::Long,
        is_first_start: true,
        needs_state: false,
    };
    let (store, start) = Store::open(
        disk,
        &settings,
        machine_identity(),
        clock.reading(),
        [1; 32],
    )
    .unwrap();
    let mut config = EngineConfig::new(1, "");
    let mode = GuardMode::Store(Durability::Long);
    config.guard = GuardConfig::new(mode, settings.max_ttl, &start);
    let engine = Arc::new(Engine::new(config, clock.now()));
    let disk_status = Arc::<DiskStatus>::default();
    let disk_thread = DiskThread::start(
        store,
        Arc::clone(&engine),
        Arc::clone(&clock),
        Arc::clone(&disk_status),
    )
    .unwrap();
    let mut session = engine.connect(Peer::default(), clock.now().time).unwrap();
    let mut index = 0;
    for (trouble, want) in [
        (FULL, GuardState::Full),
        (WELL, GuardState::Serving),
        (NO_SYNC, GuardState::Failed),
    ] {
        let changed = disk_status.changed.notified();
        fault.store(trouble, Ordering::Release);
        index += 1;
        let mut batch = engine.batch(clock.now());
        let key = format!("k{index}");
        batch.execute(
            &mut session,
            &[b"SET", key.as_bytes(), b"a", b"NX"],
            &mut Vec::new(),
        );
        let _ = batch.finish(&session, 1);
        disk_thread.thread().unpark();
        let told = tokio::time::timeout(Duration::from_secs(20), changed).await;
        assert!(told.is_ok(), "no notification of {want:?}");
        assert_eq!(engine.guard().report(clock.now().time).state, want);
    }
    disk_thread.stop();
}
