//! Sets of nodes, of clients, and of what connects them.

/// A set of nodes or of clients, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Members(u16);

/// The connections between clients and nodes; nodes do not talk to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Links {
    /// Their clients.
    pub clients: Members,
    /// Their nodes.
    pub nodes: Members,
}

impl Members {
    /// Everybody.
    pub const ALL: Self = Self(u16::MAX);

    /// Nobody.
    pub const NONE: Self = Self(0);

    /// One; nobody when the number is above 15.
    pub const fn one(number: u8) -> Self {
        if number < 16 {
            Self(1 << number)
        } else {
            Self(0)
        }
    }

    /// Whether the one with this number is among them.
    pub const fn has(self, number: u8) -> bool {
        number < 16 && self.0 & (1 << number) != 0
    }

    /// The same and one more.
    #[must_use]
    pub const fn with(self, number: u8) -> Self {
        Self(self.0 | Self::one(number).0)
    }

    /// The numbers, in order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..16).filter(move |number| self.has(*number))
    }
}

impl FromIterator<u8> for Members {
    fn from_iter<I: IntoIterator<Item = u8>>(numbers: I) -> Self {
        numbers.into_iter().fold(Self::NONE, Self::with)
    }
}

impl<const N: usize> From<[u8; N]> for Members {
    fn from(numbers: [u8; N]) -> Self {
        numbers.into_iter().collect()
    }
}

impl From<u8> for Members {
    fn from(number: u8) -> Self {
        Self::one(number)
    }
}

impl Links {
    /// Every link.
    pub const ALL: Self = Self {
        clients: Members::ALL,
        nodes: Members::ALL,
    };

    /// The links between these clients and these nodes.
    pub fn between(clients: impl Into<Members>, nodes: impl Into<Members>) -> Self {
        Self {
            clients: clients.into(),
            nodes: nodes.into(),
        }
    }

    /// Whether the link between this client and this node is one of them.
    pub const fn has(self, client: u8, node: u8) -> bool {
        self.clients.has(client) && self.nodes.has(node)
    }
}
