//! What is wrong in a file of settings, told without what it quotes: a line may hold a password.

/// The line at a byte of the text, and what is wrong there.
pub fn fault_in(text: &str, at: Option<usize>, message: &str) -> String {
    let line = text.get(..at.unwrap_or(0)).map_or(0, |before| before.matches('\n').count()) + 1;
    let parts = message.split('"').enumerate();
    let message: String =
        parts.map(|(index, part)| if index % 2 == 0 { part } else { "..." }).collect();
    format!("line {line}: {message}")
}
