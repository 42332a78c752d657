//! Where a server is, for the commands that ask one server directly: written as everywhere else.

use std::fmt;
#[cfg(feature = "tls")]
use std::sync::Arc;

use redlock_client::{AddressError, Endpoint, NodeAddress};
#[cfg(feature = "tls")]
use tokio_rustls::rustls::ClientConfig;
#[cfg(feature = "tls")]
use tokio_rustls::rustls::pki_types::ServerName;

use crate::connect_flags::ConnectFlags;
use crate::failure::Failure;
#[cfg(feature = "tls")]
use crate::tls_flags::TlsFlags;

/// A server's address, with the password for it if one is needed. Shown without the password.
#[derive(Clone, Debug)]
pub(crate) struct ServerAddress {
    pub(crate) node: NodeAddress,
    /// The settings for TLS, if it speaks that.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<redlock_client::Tls>,
}

impl ServerAddress {
    /// Reads the value of `flag`, in the forms that [`NodeAddress`] has.
    ///
    /// # Errors
    ///
    /// A sentence about what is not an address. It does not repeat a text that may hold a password.
    pub(crate) fn read(text: &str, flag: &str, flags: &ConnectFlags) -> Result<Self, Failure> {
        let refused = |error: AddressError| Failure::usage(format!("{flag}: {error}"));
        let address = flags.log_in(NodeAddress::parse(text).map_err(refused)?);
        address.check_credentials().map_err(refused)?;
        let mut address = Self::plain(address);
        address.secure(&flags.tls)?;
        Ok(address)
    }

    /// An address of a server that speaks no TLS.
    pub(crate) const fn plain(node: NodeAddress) -> Self {
        Self {
            node,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    #[cfg(feature = "tls")]
    fn secure(&mut self, tls: &TlsFlags) -> Result<(), Failure> {
        if tls.is_required() {
            self.node = self.node.clone().with_tls();
        }
        if self.node.is_tls() {
            self.tls = Some(tls.settings()?);
        }
        Ok(())
    }

    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unnecessary_wraps, reason = "with TLS, files can be unusable")]
    const fn secure(&mut self, _: &crate::tls_flags::TlsFlags) -> Result<(), Failure> {
        Ok(())
    }

    /// What `rustls` needs for a connection to `host`.
    #[cfg(feature = "tls")]
    pub(crate) fn tls_for(
        &self,
        host: &str,
    ) -> Result<(Arc<ClientConfig>, ServerName<'static>), String> {
        let tls = self.tls.as_ref().ok_or("the address asks for no TLS")?;
        tls.client_config_for(host)
            .map_err(|error| error.to_string())
    }

    /// The commands to send first: the login, and the choice of a database.
    pub(crate) fn greeting(&self) -> Vec<Vec<String>> {
        let address = &self.node;
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
        if let Endpoint::Unix(_) = self.node.endpoint() {
            f.write_str("unix:")?;
        }
        write!(f, "{}", self.node.endpoint())?;
        match self.node.database() {
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
            let address =
                ServerAddress::read(text, "--nodes", &ConnectFlags::default()).expect(text);
            assert_eq!(address.to_string(), shown, "{text}");
            assert_eq!(address.node.username(), username, "{text}");
            assert_eq!(address.node.password(), password, "{text}");
            assert!(!format!("{address:?}").contains("secret"));
        }
    }

    #[test]
    fn what_is_no_address_is_said_to_be_none_without_its_password() {
        for text in ["redis://:secret@h:x", "redis://secret@h", "unix:secret", ""] {
            let error =
                ServerAddress::read(text, "--nodes", &ConnectFlags::default()).expect_err(text);
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
        let address = ServerAddress::read("redis://u:p@h/99", "--nodes", &ConnectFlags::default())
            .expect("an address");
        let expected = [&["AUTH", "u", "p"][..], &["SELECT", "99"]];
        assert_eq!(address.greeting(), expected);
    }
}
