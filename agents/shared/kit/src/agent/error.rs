//! The errors of an agent.

use std::{io, net::SocketAddr, path::PathBuf};

use crate::spool::SpoolError;

/// The reasons why an agent fails.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The spool is unusable.
    #[error("the spool in {}", folder.display())]
    Spool {
        /// The folder of the spool.
        folder: PathBuf,
        /// The cause.
        #[source]
        cause: SpoolError,
    },
    /// The token file is unreadable.
    #[error("--token-file {}", path.display())]
    Token {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// The key in the environment is invalid.
    #[error("GRANARY_KEY")]
    Key(#[source] io::Error),
    /// The settings of https cannot be used.
    #[error("https: {0}")]
    Tls(String),
    /// The address for the agent's own metrics cannot be opened.
    #[error("--metrics-listen {address}")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// Daemons do not answer, or this host's clock is wrong.
    #[error("{0}")]
    Daemons(String),
    /// A source of the plan cannot start.
    #[error("{0}")]
    Plan(String),
    /// Signals cannot be handled, a thread cannot be started, or output cannot be written.
    #[error("{operation}")]
    System {
        /// The operation that failed.
        operation: &'static str,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The sending thread panicked.
    #[error("the sending thread panicked; this is a bug")]
    SenderDied,
}

pub(super) fn system_error(operation: &'static str) -> impl FnOnce(io::Error) -> AgentError {
    move |cause| AgentError::System { operation, cause }
}
