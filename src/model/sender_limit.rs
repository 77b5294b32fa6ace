//! The names of senders that a key may use.

use std::fmt;

/// The limit of the names for which a key may send: one whole name, or a prefix of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderLimit {
    name: String,
    is_whole: bool,
}

impl SenderLimit {
    /// Returns the limit to one whole name, or to names with a prefix.
    pub fn new(name: &str, is_whole: bool) -> Self {
        Self { name: name.to_owned(), is_whole }
    }

    /// Returns true when a sender may have this name.
    pub fn allows(&self, sender: &str) -> bool {
        if self.is_whole { sender == self.name } else { sender.starts_with(&self.name) }
    }
}

/// The limit after "whose name": `is "web1"`, or `begins with "web"`.
impl fmt::Display for SenderLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = if self.is_whole { "is" } else { "begins with" };
        write!(f, "{words} {:?}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_name_allows_no_longer_one() {
        let (whole, prefix) = (SenderLimit::new("web1", true), SenderLimit::new("web1", false));
        for (sender, expected) in
            [("web1", (true, true)), ("web10", (false, true)), ("web", (false, false))]
        {
            assert_eq!((whole.allows(sender), prefix.allows(sender)), expected, "{sender}");
        }
        assert_eq!(format!("{whole}, {prefix}"), r#"is "web1", begins with "web1""#);
    }
}
