//! Checks of single fields, and their faults.
//!
//! Must never know: dashboards, panels.

use crate::kept::{ObjectFault, check_line, check_object_name};

/// The maximum lengths of texts, in bytes.
pub(super) const TITLE_BYTES_MAX: usize = 200;
pub(super) const NAME_BYTES_MAX: usize = 256;
pub(super) const ID_BYTES_MAX: usize = 64;

pub(super) type CheckResult = Result<(), ObjectFault>;

pub(super) fn fault(location: &str, problem: impl std::fmt::Display) -> ObjectFault {
    ObjectFault::Invalid(format!("{location}: {problem}"))
}

pub(super) fn check_count(location: &str, count: usize, most: usize) -> CheckResult {
    if count > most {
        return Err(fault(location, format!("{count} exceed the limit of {most}")));
    }
    Ok(())
}

/// Checks that a word has only letters, digits and the characters of `others`, so that addresses
/// and queries need no escapes.
pub(super) fn check_word(location: &str, word: &str, others: &str) -> CheckResult {
    check_line(location, word, ID_BYTES_MAX)?;
    if word.chars().any(|c| !c.is_ascii_alphanumeric() && !others.contains(c)) {
        return Err(fault(location, format!("use letters, digits and {others:?}")));
    }
    Ok(())
}

pub(super) fn check_optional_line(
    location: &str,
    text: Option<&str>,
    bytes_max: usize,
) -> CheckResult {
    text.map_or(Ok(()), |text| check_line(location, text, bytes_max))
}

/// Checks the name of a dashboard, which is part of addresses.
pub(in crate::kept) fn check_dashboard_name(name: &str) -> Result<(), String> {
    check_object_name("dashboard", name)
}
