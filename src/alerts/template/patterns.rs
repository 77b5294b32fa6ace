//! Regular expressions of templates: compiled within limits, and cached, because rules are
//! evaluated again and again.
//!
//! Must never know: what they are matched with.

use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use quick_cache::unsync::Cache;
use regex::{Regex, RegexBuilder};

use super::fault;

/// The maximum size of a compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// The maximum size of a pattern's working memory, in bytes.
const MATCHING_BYTES_MAX: usize = 256 << 10;
/// The number of cached patterns.
const REMEMBERED_MAX: usize = 32;

static REMEMBERED: LazyLock<Mutex<Cache<Box<str>, Arc<Regex>>>> =
    LazyLock::new(|| Mutex::new(Cache::new(REMEMBERED_MAX)));

/// Returns a compiled pattern.
pub(super) fn compiled(pattern: &str) -> gotmpl::Result<Arc<Regex>> {
    if let Some(own) = REMEMBERED.lock().get(pattern) {
        return Ok(own.clone());
    }
    let mut builder = RegexBuilder::new(pattern);
    let built = builder.size_limit(PATTERN_BYTES_MAX).dfa_size_limit(MATCHING_BYTES_MAX).build();
    let built = Arc::new(built.map_err(|cause| fault(cause.to_string()))?);
    REMEMBERED.lock().insert(pattern.into(), built.clone());
    Ok(built)
}
