//! Regular expressions of templates: compiled within limits and cached, because rules are evaluated
//! repeatedly.
//!
//! Must never know: the texts that they match.

use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use quick_cache::unsync::Cache;
use regex::{Regex, RegexBuilder};

use super::fault;

/// The maximum size of a compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// The maximum size of the cache that a pattern fills while it is matched, in bytes.
const MATCHING_BYTES_MAX: usize = 256 << 10;
/// The maximum number of cached patterns.
const CACHED_MAX: usize = 32;

static CACHE: LazyLock<Mutex<Cache<Box<str>, Arc<Regex>>>> =
    LazyLock::new(|| Mutex::new(Cache::new(CACHED_MAX)));

/// Returns the compiled pattern, from the cache if possible.
pub(super) fn compiled(pattern: &str) -> gotmpl::Result<Arc<Regex>> {
    if let Some(cached) = CACHE.lock().get(pattern) {
        return Ok(cached.clone());
    }
    let mut builder = RegexBuilder::new(pattern);
    let built = builder.size_limit(PATTERN_BYTES_MAX).dfa_size_limit(MATCHING_BYTES_MAX).build();
    let built = Arc::new(built.map_err(|cause| fault(cause.to_string()))?);
    CACHE.lock().insert(pattern.into(), built.clone());
    Ok(built)
}
