//! Users of a file: what a node makes of it, who may log in, and that no password is seen anywhere.

use std::fs;
use std::io::{Read as _, Write as _};
use std::time::Instant;

use rustix::process::Signal;

use crate::program::{Directory, Program, ask, command, connect, ended, ends, serve, shows};

/// A node with the users of a file.
fn serve_users(path: &str) -> Program {
    serve(&format!("--first-start --aclfile {path}"))
}

#[test]
fn the_users_of_a_file_are_loaded_and_saved() {
    let directory = Directory::new("users-file");
    let path = directory.file(
        "users.acl",
        "user default off\nuser alice on >secret ~lock:* +@lock\nuser op on >other ~* &* +@all\n",
    );
    let mut node = serve_users(&path);
    let address = node.address();
    let mut alice = connect(address);
    assert_eq!(ask(&mut alice, "PING"), "-NOAUTH Authentication required.");
    assert_eq!(ask(&mut alice, "AUTH alice secret"), "+OK");
    assert_eq!(ask(&mut alice, "SET lock:1 t NX PX 30000"), "+OK");
    assert_eq!(
        ask(&mut alice, "SET other t"),
        "-NOPERM No permissions to access a key"
    );
    assert_eq!(
        ask(&mut alice, "CONFIG GET port"),
        "-NOPERM User alice has no permissions to run the 'config|get' command"
    );
    let mut op = connect(address);
    assert_eq!(ask(&mut op, "AUTH op other"), "+OK");
    assert_eq!(ask(&mut op, "ACL SETUSER bob on >third"), "+OK");
    assert_eq!(ask(&mut op, "ACL SAVE"), "+OK");
    let saved = fs::read_to_string(&path).expect("a file");
    shows(
        &saved,
        &[
            "user alice on sanitize-payload #2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b ~lock:* resetchannels -@all +@lock\n",
            "user bob on ",
            "user default off ",
        ],
    );
    assert!(
        !saved.contains("secret") && !saved.contains("third"),
        "{saved}"
    );
    // What is wrong changes nothing, and says where.
    for (text, error) in [
        (
            format!("{saved}user alice on\n"),
            "Duplicate user 'alice' found on line 5",
        ),
        (
            saved[..saved.len() - 9].to_owned(),
            "users.acl:4: the line does not end",
        ),
        (
            "user op on +nosuch\n".to_owned(),
            "users.acl:1: Error in applying operation '+nosuch'",
        ),
    ] {
        fs::write(&path, text).expect("a file");
        let reply = ask(&mut op, "ACL LOAD");
        shows(
            &reply,
            &[
                "-ERR ",
                error,
                "no change to the previously active ACL rules",
            ],
        );
        assert_eq!(ask(&mut alice, "GET lock:1"), "$1");
        assert_eq!(ask(&mut alice, ""), "t");
    }
    fs::remove_file(&path).expect("removed");
    shows(
        &ask(&mut op, "ACL LOAD"),
        &["-ERR Error loading ACLs", "No such file"],
    );
    fs::create_dir(&path).expect("a directory in its place");
    shows(
        &ask(&mut op, "ACL SAVE"),
        &["-ERR There was an error trying to save the ACLs"],
    );
    fs::remove_dir(&path).expect("removed");
    // Who is not in the file any more is disconnected.
    fs::write(&path, "user default off\nuser op on >other ~* &* +@all\n").expect("a file");
    assert_eq!(ask(&mut op, "ACL LOAD"), "+OK");
    assert_eq!(alice.read(&mut [0]).expect("the end"), 0);
    assert_eq!(ask(&mut op, "ACL WHOAMI"), "$2");
    assert!(node.end(Signal::TERM).success());
}

#[test]
fn an_unusable_file_keeps_a_node_from_starting() {
    let directory = Directory::new("users-unusable");
    let missing = directory.path_of("missing.acl");
    let (_, error) = ends(64, ["serve", "--port", "0", "--aclfile", &missing]);
    shows(
        &error,
        &["--aclfile: cannot read", "missing.acl", "No such file"],
    );
    let path = directory.file(
        "users.acl",
        "user default off\nuser a on >secret ~* +@nosuch\n",
    );
    let (_, error) = ends(64, ["serve", "--port", "0", "--aclfile", &path]);
    shows(
        &error,
        &["users.acl:2: Error in applying operation '+@nosuch'"],
    );
    assert!(!error.contains("secret"), "{error}");
    let words = [
        "serve",
        "--port",
        "0",
        "--aclfile",
        &path,
        "--requirepass",
        "hidden",
    ];
    let (_, error) = ends(64, words);
    shows(&error, &["--aclfile has all passwords"]);
    assert!(!error.contains("hidden"), "{error}");
}

#[test]
fn wrong_passwords_are_slow_and_hold_up_nobody_else() {
    let directory = Directory::new("users-slow");
    let path = directory.file(
        "users.acl",
        "user default on nopass ~* +@all\nuser a on >right\n",
    );
    let mut node = serve_users(&path);
    let address = node.address();
    let mut guesser = connect(address);
    let begin = Instant::now();
    for guess in 0..3 {
        guesser
            .write_all(format!("AUTH a {guess}\r\n").as_bytes())
            .expect("sent");
    }
    // They wait for 700 ms; others are answered meanwhile.
    let mut other = connect(address);
    for _ in 0..3 {
        assert_eq!(ask(&mut other, "PING"), "+PONG");
    }
    assert!(begin.elapsed().as_millis() < 700, "{:?}", begin.elapsed());
    for _ in 0..3 {
        let reply = ask(&mut guesser, "");
        assert!(reply.starts_with("-WRONGPASS"), "{reply}");
    }
    assert!(begin.elapsed().as_millis() >= 700, "{:?}", begin.elapsed());
    assert_eq!(ask(&mut guesser, "AUTH a right"), "+OK");
}

#[test]
fn passwords_are_seen_nowhere() {
    let directory = Directory::new("users-unseen");
    let path = directory.file("users.acl", "user default on nopass ~* &* +@all\n");
    let mut node = serve(&format!(
        "--first-start --loglevel debug --slowlog-log-slower-than 0 --aclfile {path}"
    ));
    let address = node.address();
    let mut monitor = connect(address);
    assert_eq!(ask(&mut monitor, "MONITOR"), "+OK");
    let mut client = connect(address);
    for line in [
        "ACL SETUSER a on >hunter2 ~* +@all",
        "ACL SETUSER a nosuch >hunter2",
        "AUTH a hunter2",
        "AUTH a xhunter2",
        "HELLO 3 AUTH a hunter2 SETNAME me",
        "HELLO 2 AUTH a xhunter2",
        "MULTI",
        "AUTH a hunter2",
        "EXEC",
        "CONFIG SET requirepass hunter2",
        "CLIENT SETNAME done",
    ] {
        client
            .write_all(format!("{line}\r\n").as_bytes())
            .expect("sent");
    }
    for line in [
        "SLOWLOG GET 100",
        "INFO ALL",
        "CLIENT LIST",
        "ACL LIST",
        "ACL GETUSER a",
        "ECHO the-end",
    ] {
        client
            .write_all(format!("{line}\r\n").as_bytes())
            .expect("sent");
    }
    let mut seen = Vec::new();
    let mut byte = [0];
    for (stream, end) in [
        (&mut client, "the-end\r\n"),
        (&mut monitor, "the-end\"\r\n"),
    ] {
        while !seen.ends_with(end.as_bytes()) {
            stream.read_exact(&mut byte).expect("more");
            seen.push(byte[0]);
        }
    }
    node.end(Signal::TERM);
    let seen = String::from_utf8_lossy(&seen).into_owned() + &node.seen().join("\n");
    shows(&seen, &["(redacted)", "acl_access_denied_auth"]);
    assert!(!seen.contains("hunter2"), "{seen}");
}

#[test]
fn the_commands_log_in_as_a_user() {
    let directory = Directory::new("users-commands");
    let path = directory.file(
        "users.acl",
        "user default off\nuser a on >hunter2 ~job* &* +@lock\n",
    );
    let mut node = serve_users(&path);
    let address = node.address().to_string();
    let run = |args: &[&str], user: &str, pass: &str| {
        let mut command = command(args);
        command.env("LOCKNODE_NODES", &address);
        command
            .env("LOCKNODE_USER", user)
            .env("LOCKNODE_PASS", pass);
        command.output().expect("the program starts")
    };
    ended(0, &run(&["status"], "a", "hunter2"));
    ended(0, &run(&["run", "job", "--", "true"], "a", "hunter2"));
    ended(0, &run(&["status", "job"], "a", "hunter2"));
    // Neither another key nor another password will do.
    for (name, pass) in [("other", "hunter2"), ("job", "wrong")] {
        let output = run(&["run", name, "--", "true"], "a", pass);
        assert!(!output.status.success(), "{name} {pass}: {output:?}");
    }
    let flags = [
        "status", "--nodes", &address, "--user", "a", "--pass", "hunter2",
    ];
    ends(0, flags);
    let (help, _) = ended(0, &run(&["run", "--help"], "a", "hunter2"));
    assert!(!help.contains("hunter2"), "{help}");
}
