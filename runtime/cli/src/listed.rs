//! Values that have names: the names appear in the help, in completions and in manual pages.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::Error;
use clap::{Arg, Command};
use std::ffi::OsStr;

/// Reads a value by `parse`, which may take more forms than the `names` that are shown.
#[derive(Clone, Debug)]
pub(crate) struct Listed<T> {
    parse: fn(&str) -> Result<T, String>,
    names: Vec<&'static str>,
}

impl<T> Listed<T> {
    pub fn new(
        parse: fn(&str) -> Result<T, String>,
        names: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        Self { parse, names: names.into_iter().collect() }
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Listed<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, Error> {
        TypedValueParser::parse_ref(&self.parse, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names.iter().copied().map(PossibleValue::new)))
    }
}
