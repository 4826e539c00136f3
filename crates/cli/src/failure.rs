//! Why a command failed, and the exit code that goes with it: 2 for what was typed wrong, 1 for everything else.

use std::process::ExitCode;
use tontine::Error;

/// What ended a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An argument or a setting is wrong: typing it right helps.
    Typed(String),
    /// What was typed is right, and something else failed.
    Failed(String),
}

impl Failure {
    /// The exit code.
    pub(crate) fn code(&self) -> ExitCode {
        match self {
            Self::Typed(_) => ExitCode::from(2),
            Self::Failed(_) => ExitCode::FAILURE,
        }
    }

    /// What is said.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Typed(message) | Self::Failed(message) => message,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Configuration(_) | Error::Misuse(_) => Self::Typed(message),
            _ => Self::Failed(message),
        }
    }
}
