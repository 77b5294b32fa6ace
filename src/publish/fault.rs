//! The reasons why a command to MongoDB failed.

use mongodb::error::{Error, ErrorKind};

/// The maximum length of a cause in a message.
const CAUSE_CHARS_MAX: usize = 300;

/// The error codes of a deployment that elects another primary, shuts down, or cannot reach a
/// majority of its servers.
const PASSING_CODES: [i32; 9] = [64, 91, 189, 10058, 10107, 11600, 11602, 13435, 13436];

/// The reason why a command failed. The command may have had an effect nevertheless.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishFault {
    /// MongoDB was not reachable, has no primary or no majority, or the connection broke.
    #[error("MongoDB is not available: {0}; start it, or correct publish.uri")]
    Unreachable(String),
    /// MongoDB did not answer in time.
    #[error("MongoDB did not answer within {0} seconds")]
    Slow(u64),
    /// MongoDB refused the command.
    #[error("MongoDB refused to {operation}: {cause}")]
    Refused {
        /// The operation and its object.
        operation: String,
        /// The code and the message of the server.
        cause: String,
    },
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
}

impl PublishFault {
    /// Returns the fault of an operation from the driver's error.
    pub(crate) fn of(operation: &str, error: &Error) -> Self {
        if let ErrorKind::Command(refused) = &*error.kind {
            let cause = format!("{} ({}): {}", refused.code_name, refused.code, refused.message);
            return Self::of_code(operation, refused.code, &cause);
        }
        if let ErrorKind::Authentication { message, .. } = &*error.kind {
            return Self::refused(operation, &format!("{message}; correct publish.uri"));
        }
        Self::Unreachable(extract_cause(&error.kind.to_string()))
    }

    /// Returns the fault of an operation from the code of a server's error.
    pub(crate) fn of_code(operation: &str, code: i32, cause: &str) -> Self {
        if PASSING_CODES.contains(&code) {
            return Self::Unreachable(cause.chars().take(CAUSE_CHARS_MAX).collect());
        }
        Self::refused(operation, cause)
    }

    pub(crate) fn refused(operation: &str, cause: &str) -> Self {
        let cause = cause.chars().take(CAUSE_CHARS_MAX).collect();
        Self::Refused { operation: operation.to_owned(), cause }
    }

    /// Returns true when other documents may still be accepted.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }
}

/// Returns the cause of a driver's error in a few words, without addresses of other servers.
pub fn driver_cause(error: &Error) -> String {
    if let ErrorKind::Command(refused) = &*error.kind {
        return format!("{} ({}): {}", refused.code_name, refused.code, refused.message);
    }
    if let ErrorKind::Authentication { message, .. } = &*error.kind {
        return message.clone();
    }
    extract_cause(&error.kind.to_string())
}

/// Extracts the cause from a driver's error, which also dumps the state of all servers.
fn extract_cause(text: &str) -> String {
    let cause = text.rsplit_once("Error: ").map_or(text, |(_, cause)| cause);
    let end = [", labels:", ", source:", " }"].iter().filter_map(|end| cause.find(end)).min();
    let cause = end.and_then(|end| cause.get(..end)).unwrap_or(cause);
    let cause = cause.trim().trim_start_matches("Kind: ");
    cause.chars().take(CAUSE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_omits_the_drivers_dump_of_all_servers() {
        let dump = "Server selection timeout: No available servers. Topology: { Type: Single, \
                    Servers: [ { Address: db1:27017, Type: Unknown, Error: Kind: I/O error: \
                    Connection refused (os error 111), labels: {} } ] }";
        assert_eq!(extract_cause(dump), "I/O error: Connection refused (os error 111)");
        assert_eq!(extract_cause("no answer"), "no answer");
    }
}
