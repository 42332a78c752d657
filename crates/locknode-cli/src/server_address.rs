//! Where a server is, for the commands that ask one server directly: written as everywhere else.

use std::fmt;

use redlock_client::{AddressError, Endpoint, NodeAddress};

use crate::failure::Failure;

/// A server's address, with the password for it if one is needed. Shown without the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerAddress(pub(crate) NodeAddress);

impl ServerAddress {
    /// Reads the value of `flag`, in the forms that [`NodeAddress`] has.
    ///
    /// # Errors
    ///
    /// A sentence about what is not an address. It does not repeat a text that may hold a password.
    pub(crate) fn read(text: &str, flag: &str) -> Result<Self, Failure> {
        let refused = |error: AddressError| Failure::usage(format!("{flag}: {error}"));
        let address = NodeAddress::parse(text).map_err(refused)?;
        address.check_credentials().map_err(refused)?;
        if address.is_tls() {
            return Err(Failure::usage(format!(
                "{flag}: {address}: this command speaks no TLS; run, lock, extend, release and status NAME do, in \
                 builds with it"
            )));
        }
        Ok(Self(address))
    }

    /// The commands to send first: the login, and the choice of a database.
    pub(crate) fn greeting(&self) -> Vec<Vec<String>> {
        let Self(address) = self;
        let login = address.password().map(|password| {
            let words = [Some("AUTH"), address.username(), Some(password)];
            words.into_iter().flatten().map(str::to_owned).collect()
        });
        let database = (address.database() != 0)
            .then(|| vec!["SELECT".to_owned(), address.database().to_string()]);
        login.into_iter().chain(database).collect()
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Endpoint::Unix(_) = self.0.endpoint() {
            f.write_str("unix:")?;
        }
        write!(f, "{}", self.0.endpoint())?;
        match self.0.database() {
            0 => Ok(()),
            database => write!(f, "/{database}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown_in_every_usual_form() {
        for (text, shown, username, password) in [
            ("10.0.0.5", "10.0.0.5:6379", None, None),
            ("node-1:7101", "node-1:7101", None, None),
            ("::1", "[::1]:6379", None, None),
            ("[::1]:7101", "[::1]:7101", None, None),
            ("[fe80::1%eth0]", "[fe80::1%25eth0]:6379", None, None),
            ("unix:/run/n.sock", "unix:/run/n.sock", None, None),
            ("unix:///run/n.sock", "unix:/run/n.sock", None, None),
            ("/run/n.sock", "unix:/run/n.sock", None, None),
            ("redis://h", "h:6379", None, None),
            ("redis://:secret@h:1/0", "h:1", None, Some("secret")),
            ("redis://h/99", "h:6379/99", None, None),
            (
                "redis://u:p%40%25@[::1]:2",
                "[::1]:2",
                Some("u"),
                Some("p@%"),
            ),
        ] {
            let address = ServerAddress::read(text, "--nodes").expect(text);
            assert_eq!(address.to_string(), shown, "{text}");
            assert_eq!(address.0.username(), username, "{text}");
            assert_eq!(address.0.password(), password, "{text}");
            assert!(!format!("{address:?}").contains("secret"));
        }
    }

    #[test]
    fn what_is_no_address_is_said_to_be_none_without_its_password() {
        for text in [
            "redis://:secret@h:x",
            "redis://secret@h",
            "unix:secret",
            "rediss://:secret@h",
            "",
        ] {
            let error = ServerAddress::read(text, "--nodes").expect_err(text);
            let text_of_error = error.to_string();
            assert!(text_of_error.starts_with("--nodes: "), "{text_of_error}");
            assert!(
                !text_of_error.contains("secret") || text.starts_with("unix:"),
                "{text_of_error}"
            );
        }
    }

    #[test]
    fn the_login_and_the_database_come_first() {
        let address = ServerAddress::read("redis://u:p@h/99", "--nodes").expect("an address");
        let expected = [&["AUTH", "u", "p"][..], &["SELECT", "99"]];
        assert_eq!(address.greeting(), expected);
    }
}
