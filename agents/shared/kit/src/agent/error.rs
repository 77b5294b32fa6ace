//! Why an agent ended otherwise than asked.

use std::{io, net::SocketAddr, path::PathBuf};

use crate::spool::SpoolError;

/// Why an agent ended otherwise than asked.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The spool cannot be used.
    #[error("the spool in {}", folder.display())]
    Spool {
        /// Its folder.
        folder: PathBuf,
        /// What is wrong with it.
        #[source]
        cause: SpoolError,
    },
    /// The token cannot be read.
    #[error("--token-file {}", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        cause: io::Error,
    },
    /// The certificates cannot be read.
    #[error("--ca-file {0}")]
    Tls(String),
    /// The agent's own metrics cannot be shown.
    #[error("--metrics-listen {address}")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// Daemons that are not there, or a clock that is wrong.
    #[error("{0}")]
    Daemons(String),
    /// What is to be collected cannot be started.
    #[error("{0}")]
    Plan(String),
    /// Signals cannot be handled, a thread cannot be started, or output cannot be written.
    #[error("{operation}")]
    System {
        /// What was being done.
        operation: &'static str,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The sending thread panicked.
    #[error("the sending thread died; this is a bug")]
    SenderDied,
}

pub(super) fn system(operation: &'static str) -> impl FnOnce(io::Error) -> AgentError {
    move |cause| AgentError::System { operation, cause }
}
