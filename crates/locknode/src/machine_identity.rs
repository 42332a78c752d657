//! The identity of the machine and of its boot, which shows whether clock readings of an earlier
//! run are still meaningful.

use std::fs;
use std::path::Path;

use locknode_engine::durable::Machine;

/// Reads the identity. What the system does not provide is zero; without a boot id no two boots are
/// taken to be the same.
pub(crate) fn machine_identity() -> Machine {
    read_below(Path::new("/"))
}

fn read_below(root: &Path) -> Machine {
    let id = |path: &str| {
        let text = fs::read_to_string(root.join(path)).ok();
        text.and_then(|text| parse_id(&text)).unwrap_or_default()
    };
    let namespace = fs::read_link(root.join("proc/self/ns/time")).ok();
    let namespace = namespace.and_then(|target| parse_namespace(target.to_str()?));
    Machine {
        boot_id: id("proc/sys/kernel/random/boot_id"),
        machine_id: id("etc/machine-id"),
        time_namespace: namespace.unwrap_or_default(),
    }
}

/// Parses 32 hexadecimal digits, with or without the hyphens of a UUID.
fn parse_id(text: &str) -> Option<[u8; 16]> {
    let mut digits = text.trim_ascii().bytes().filter(|byte| *byte != b'-');
    let mut digit = || char::from(digits.next()?).to_digit(16);
    let mut id = [0; 16];
    for byte in &mut id {
        *byte = u8::try_from(digit()? * 16 + digit()?).ok()?;
    }
    digits.next().is_none().then_some(id)
}

/// Parses the number in `time:[4026531834]`.
fn parse_namespace(target: &str) -> Option<u64> {
    target
        .strip_prefix("time:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `[G7]`
    #[test]
    fn ids_are_32_hexadecimal_digits() {
        let id = [
            0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54,
            0x32, 0x10,
        ];
        for (text, want) in [
            ("0123456789abcdeffedcba9876543210\n", Some(id)),
            ("01234567-89ab-cdef-fedc-ba9876543210\n", Some(id)),
            ("01234567-89AB-CDEF-FEDC-BA9876543210", Some(id)),
            ("", None),
            ("uninitialized\n", None),
            ("0123456789abcdeffedcba987654321", None),
            ("0123456789abcdeffedcba98765432100", None),
            ("0123456789abcdef fedcba9876543210", None),
        ] {
            assert_eq!(parse_id(text), want, "{text:?}");
        }
    }

    /// `[G7]`
    #[test]
    fn a_namespace_is_the_number_in_its_link() {
        for (target, want) in [
            ("time:[4026531834]", Some(4_026_531_834)),
            ("time:[]", None),
            ("pid:[4026531834]", None),
            ("/proc/1/ns/time", None),
        ] {
            assert_eq!(parse_namespace(target), want, "{target}");
        }
    }

    /// `[G7]`
    #[test]
    fn a_system_without_ids_never_matches() {
        let dir = tempfile::tempdir().unwrap();
        let machine = read_below(dir.path());
        assert_eq!(machine, Machine::default());
        assert!(!machine.is_same_boot(&machine));
    }

    /// `[G7]`
    #[cfg(target_os = "linux")]
    #[test]
    fn linux_identifies_its_boot() {
        let machine = machine_identity();
        // In a time namespace other than the initial one, no two runs match.
        let is_initial = machine.time_namespace == Machine::INITIAL_TIME_NAMESPACE;
        assert_eq!(machine.is_same_boot(&machine_identity()), is_initial);
    }

    /// `[G7]`
    #[cfg(unix)]
    #[test]
    fn only_the_initial_time_namespace_matches_itself() {
        for (target, is_same) in [("time:[4026531834]", true), ("time:[4026532177]", false)] {
            let root = tempfile::tempdir().unwrap();
            let put = |path: &str, text: &str| {
                let path = root.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            put(
                "proc/sys/kernel/random/boot_id",
                "0123456789abcdeffedcba9876543210\n",
            );
            fs::create_dir_all(root.path().join("proc/self/ns")).unwrap();
            std::os::unix::fs::symlink(target, root.path().join("proc/self/ns/time")).unwrap();
            let machine = read_below(root.path());
            let is_found = machine.is_same_boot(&read_below(root.path()));
            assert_eq!(is_found, is_same, "{target}");
        }
    }
}
