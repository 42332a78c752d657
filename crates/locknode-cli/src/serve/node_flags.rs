//! The options that the node itself obeys: a flag for each row of its table.

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use locknode::{ConfigOption, Options};

/// The options of the node as its flags set them.
#[derive(Debug)]
pub(super) struct NodeFlags {
    pub(super) options: Options,
}

impl Args for NodeFlags {
    fn augment_args(command: Command) -> Command {
        command.args(Options::TABLE.iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for NodeFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut options = Options::default();
        for option in Options::TABLE {
            if let Some(text) = matches.get_one::<String>(option.name()) {
                let set = option.set(&mut options, text.as_bytes());
                set.map_err(|reason| Error::raw(ErrorKind::ValueValidation, reason))?;
            }
        }
        Ok(Self { options })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn flag(option: &'static ConfigOption) -> Arg {
    let (word, example) = option.example();
    let help = option.help();
    let sentence = help.split("\n\n").next().unwrap_or_default();
    let parse = move |text: &str| match option.set(&mut Options::default(), text.as_bytes()) {
        Ok(()) => Ok(text.to_owned()),
        Err(reason) => Err(format!("{reason}; an example is {example:?}")),
    };
    let flag = Arg::new(option.name())
        .long(option.name())
        .value_name(word)
        .help(sentence.trim_end_matches('.').replace('\n', " "))
        .long_help(help)
        .value_parser(parse);
    match option.default_text() {
        none if none.is_empty() => flag,
        text => flag.default_value(text),
    }
}
