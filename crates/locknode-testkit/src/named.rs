//! Enums whose values have names.

/// Makes an enum of values that each have a name of one word, with the list of them, the names,
/// and the way back from a name.
macro_rules! named {
    (
        $(#[$attribute:meta])*
        pub enum $enum:ident {
            $($(#[$about:meta])* $value:ident = $name:literal,)+
        }
    ) => {
        $(#[$attribute])*
        pub enum $enum {
            $($(#[$about])* $value,)+
        }

        impl $enum {
            /// Every one, in order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// Its name, as it is written on a command line and in a scenario.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }

            /// The one with this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.name() == name)
            }
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

pub(crate) use named;

#[cfg(test)]
mod tests {
    use crate::bug::Bug;
    use crate::check::ViolationKind;

    #[test]
    fn every_value_is_found_by_a_name_of_its_own() {
        for bug in Bug::ALL {
            assert_eq!(Bug::named(&bug.to_string()), Some(bug));
        }
        assert_eq!(Bug::named("none"), None);
        for kind in ViolationKind::ALL {
            assert_eq!(ViolationKind::named(&kind.to_string()), Some(kind));
        }
    }
}
