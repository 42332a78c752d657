use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

fn open(path: &Path) -> Directory {
    Directory::open(path).unwrap()
}

fn refused(path: &Path) -> String {
    Directory::open(path).unwrap_err().to_string()
}

/// `[S1]`
#[test]
fn a_missing_directory_is_created_for_its_user_alone() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("node-1");
    let directory = open(&path);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path) & !DIRECTORY_MODE, 0);
    assert_eq!(mode(&path.join("lock")) & !FILE_MODE, 0);
    drop(directory);
    open(&path);
}

/// `[S1]`
#[test]
fn a_directory_in_use_is_refused_with_its_process_number() {
    let root = tempfile::tempdir().unwrap();
    let first = open(root.path());
    let error = Directory::open(root.path()).unwrap_err();
    assert!(error.is_locked());
    let process = format!("in use by process {}", std::process::id());
    assert!(error.to_string().contains(&process), "{error}");
    drop(first);
    open(root.path());
}

/// `[S1]` Neither the text in the file nor how far it was written matters once the process is gone.
#[test]
fn a_leftover_lock_file_locks_nothing() {
    for left in ["", "1\n", "4294967295\n", "42", "\0\0\0\0\0\0"] {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("lock"), left).unwrap();
        open(root.path());
        let holder = fs::read_to_string(root.path().join("lock")).unwrap();
        assert_eq!(holder, format!("{}\n", std::process::id()));
    }
}

/// `[S4]`
#[test]
fn a_directory_that_is_not_a_nodes_is_refused_and_left_as_it_was() {
    type Prepare = fn(&Path);
    let rows: &[(&str, Prepare, &str)] = &[
        (
            "a file",
            |path| fs::write(path, "text").unwrap(),
            "not a directory",
        ),
        (
            "foreign files",
            |path| {
                fs::create_dir(path).unwrap();
                fs::write(path.join("notes.txt"), "text").unwrap();
            },
            "notes.txt is not one of its files",
        ),
        (
            "foreign lock",
            |path| {
                fs::create_dir(path).unwrap();
                fs::write(path.join("lock"), "pid=17 host=a").unwrap();
            },
            "/lock is not one of its files",
        ),
        (
            "binary lock",
            |path| {
                fs::create_dir(path).unwrap();
                fs::write(path.join("lock"), [0xff; 100]).unwrap();
            },
            "/lock is not one of its files",
        ),
        (
            "a lock that is a symbolic link",
            |path| {
                fs::create_dir(path).unwrap();
                symlink("/etc/passwd", path.join("lock")).unwrap();
            },
            "not a regular file",
        ),
    ];
    for (name, prepare, want) in rows {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("given");
        prepare(&path);
        let before = content(&path);
        let error = refused(&path);
        assert!(error.contains(want), "{name}: {error}");
        assert!(
            error.contains(&path.display().to_string()),
            "{name}: {error}"
        );
        assert_eq!(content(&path), before, "{name}");
    }
    let root = tempfile::tempdir().unwrap();
    let error = refused(&root.path().join("missing/given"));
    assert!(
        error.contains("create its parent directory first"),
        "{error}"
    );
}

/// Everything below a path, for comparison.
fn content(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    if path.is_file() {
        return vec![(path.to_owned(), fs::read(path).unwrap())];
    }
    let entries = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries
        .map(|path| (path.clone(), fs::read(&path).unwrap_or_default()))
        .collect();
    found.sort();
    found
}

/// `[S1]`
#[test]
fn a_read_only_directory_is_refused_with_advice() {
    let root = tempfile::tempdir().unwrap();
    let set_mode = |mode| fs::set_permissions(root.path(), fs::Permissions::from_mode(mode));
    set_mode(0o500).unwrap();
    if File::create(root.path().join("probe")).is_ok() {
        // The superuser can write anywhere.
        fs::remove_file(root.path().join("probe")).unwrap();
    } else {
        let error = refused(root.path());
        assert!(error.contains("let the user that runs the node"), "{error}");
    }
    set_mode(0o700).unwrap();
    open(root.path());
}

/// `[S1]` Removing or replacing `lock` lets another process in.
#[test]
fn a_directory_whose_lock_was_removed_or_replaced_is_no_longer_written() {
    type Change = fn(&Path);
    let rows: [(&str, Change); 4] = [
        ("removed", |path| fs::remove_file(path).unwrap()),
        ("replaced", |path| {
            fs::remove_file(path).unwrap();
            fs::write(path, "").unwrap();
        }),
        ("moved away and back", |path| {
            let away = path.with_extension("away");
            fs::rename(path, &away).unwrap();
            fs::write(path, "").unwrap();
        }),
        ("the directory moved", |path| {
            let root = path.parent().unwrap();
            let away = root.with_extension("away");
            fs::rename(root, &away).unwrap();
        }),
    ];
    for (name, change) in rows {
        let above = tempfile::tempdir().unwrap();
        let root = above.path().join("node");
        let mut disk = open(&root);
        disk.create("state", 8).unwrap();
        disk.sync("state").unwrap();
        disk.write("state", 0, b"before").unwrap();
        change(&root.join("lock"));
        // The check after the sync covers what was written before.
        let lost = |result: io::Result<()>| {
            let error = result.unwrap_err();
            assert_eq!(
                error.kind(),
                io::ErrorKind::StaleNetworkFileHandle,
                "{name}"
            );
            let text = error.to_string();
            assert!(text.contains("lock file was removed or replaced"), "{text}");
        };
        lost(disk.sync("state"));
        lost(disk.write("state", 0, b"after"));
        lost(disk.create("log-0000000000000001", 8));
        lost(disk.remove("state"));
        if name == "moved away and back" {
            fs::rename(root.join("lock.away"), root.join("lock")).unwrap();
            lost(disk.sync("state"));
        }
        drop(disk);
    }
}

/// A file and a directory on a file system that does not support sync and says so: skipping the
/// system call would return no error.
#[cfg(target_os = "linux")]
#[test]
fn a_sync_of_a_file_and_of_the_directory_is_a_system_call() {
    let root = tempfile::tempdir().unwrap();
    let path = PathBuf::from("/proc/thread-self");
    let mut disk = Directory {
        handle: File::open(&path).unwrap(),
        path,
        lock: LockFile::take(root.path().join("lock")).unwrap(),
        open: Vec::new(),
        has_written: true,
    };
    for is_grown in [false, true] {
        disk.file("comm").unwrap().is_grown = is_grown;
        let error = disk.sync("comm").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
    }
    let error = disk.sync_dir().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
    let error = sync_directory(Path::new("/proc/thread-self")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
}

/// `[S4]`
#[test]
fn a_directory_that_was_only_read_is_left_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("state"), "mine").unwrap();
    let before = content(root.path());
    let mut disk = open(root.path());
    assert_eq!(disk.read("state").unwrap().unwrap(), b"mine");
    drop(disk);
    assert_eq!(content(root.path()), before);
    let mut disk = open(root.path());
    disk.write("state", 0, b"ours").unwrap();
    drop(disk);
    assert!(root.path().join("lock").exists());
}

#[test]
fn files_hold_what_was_written() {
    let root = tempfile::tempdir().unwrap();
    let mut disk = open(root.path());
    assert_eq!(disk.read("state").unwrap(), None);

    // More than a chunk, and not a multiple of one.
    let len = CHUNK_LEN + 4097;
    disk.create("state", len as u64).unwrap();
    disk.sync("state").unwrap();
    disk.sync_dir().unwrap();
    assert_eq!(disk.read("state").unwrap(), Some(vec![0; len]));

    disk.write("state", 3, b"abc").unwrap();
    disk.write("state", len as u64, b"tail").unwrap();
    disk.sync("state").unwrap();
    let mut want = vec![0; len];
    want[3..6].copy_from_slice(b"abc");
    want.extend_from_slice(b"tail");
    assert_eq!(disk.read("state").unwrap(), Some(want));

    disk.create("state", 2).unwrap();
    assert_eq!(disk.read("state").unwrap(), Some(vec![0; 2]));

    let mut names = disk.list().unwrap();
    names.sort();
    assert_eq!(names, ["lock", "state"]);
    for _ in 0..2 {
        disk.remove("state").unwrap();
    }
    assert_eq!(disk.read("state").unwrap(), None);
}

/// Blocks are allocated before they are needed.
#[test]
fn created_files_have_no_holes() {
    use std::os::unix::fs::MetadataExt as _;
    let root = tempfile::tempdir().unwrap();
    let mut disk = open(root.path());
    disk.create("log-0000000000000001", 1 << 20).unwrap();
    disk.sync("log-0000000000000001").unwrap();
    let metadata = fs::metadata(root.path().join("log-0000000000000001")).unwrap();
    assert!(metadata.blocks() * 512 >= 1 << 20, "{}", metadata.blocks());
}

#[test]
fn only_existing_files_are_written_and_synced() {
    let root = tempfile::tempdir().unwrap();
    let mut disk = open(root.path());
    for result in [disk.write("state", 0, b"x"), disk.sync("state")] {
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
    assert_eq!(disk.list().unwrap(), ["lock"]);
}

#[test]
fn more_files_can_be_written_than_are_kept_open() {
    let root = tempfile::tempdir().unwrap();
    let mut disk = open(root.path());
    let names: Vec<String> = (0..3 * OPEN_MAX)
        .map(|number| format!("log-{number:016x}"))
        .collect();
    for name in &names {
        disk.create(name, 8).unwrap();
    }
    // None of them may be closed before it is synced.
    assert_eq!(disk.open.len(), names.len());
    for name in &names {
        disk.write(name, 0, name.as_bytes()).unwrap();
        disk.sync(name).unwrap();
    }
    for name in &names {
        assert_eq!(disk.read(name).unwrap().unwrap(), name.as_bytes());
        disk.write(name, 0, b"again").unwrap();
        disk.sync(name).unwrap();
    }
    disk.create("log-last", 0).unwrap();
    assert!(disk.open.len() <= names.len());
}

#[test]
fn bad_names_and_irregular_files_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let mut disk = open(root.path());
    for name in ["", ".", "..", "../state", "a/b", "/etc/passwd", "a\0b"] {
        for result in [
            disk.create(name, 1),
            disk.write(name, 0, b"x"),
            disk.remove(name),
        ] {
            assert_eq!(
                result.unwrap_err().kind(),
                io::ErrorKind::InvalidInput,
                "{name:?}"
            );
        }
    }
    fs::create_dir(root.path().join("state")).unwrap();
    symlink("/etc/passwd", root.path().join("log-1")).unwrap();
    for name in ["state", "log-1"] {
        let results = [
            disk.read(name).map(|_| ()),
            disk.create(name, 1),
            disk.write(name, 0, b"x"),
        ];
        for result in results {
            assert_eq!(
                result.unwrap_err().kind(),
                io::ErrorKind::InvalidInput,
                "{name}"
            );
        }
    }
}
