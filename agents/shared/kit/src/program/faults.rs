//! Errors in a settings file, reported without quoting the file: a line may contain a password.

/// Formats an error with the line number of a byte position. Quoted parts of the message are
/// replaced by dots.
pub fn fault_in(text: &str, at: Option<usize>, message: &str) -> String {
    let line = text.get(..at.unwrap_or(0)).map_or(0, |before| before.matches('\n').count()) + 1;
    let parts = message.split('"').enumerate();
    let message: String =
        parts.map(|(index, part)| if index % 2 == 0 { part } else { "..." }).collect();
    format!("line {line}: {message}")
}
