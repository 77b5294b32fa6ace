//! Questions and answers of shards as JSON, and the errors when one of them is damaged.
//!
//! Must never know: what a question or an answer contains.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{Budget, QueryError};

/// Bytes of memory per byte of JSON, at most.
const READ_MEMORY: usize = 4;

/// Returns a question or an answer as JSON.
///
/// # Errors
/// When the message cannot be JSON.
pub fn written(message: &impl Serialize) -> Result<Vec<u8>, QueryError> {
    serde_json::to_vec(message).map_err(|cause| QueryError::Execution(cause.to_string()))
}

/// Reads the question of another node.
///
/// # Errors
/// When the question is damaged.
pub fn read_question<'q, T: Deserialize<'q>>(question: &'q [u8]) -> Result<T, QueryError> {
    serde_json::from_slice(question).map_err(|_| damaged_question())
}

/// Returns the error of a damaged question.
pub(crate) fn damaged_question() -> QueryError {
    QueryError::Invalid("the question from another node is damaged".to_owned())
}

/// Reads the answer of a shard. Its memory is reserved before.
///
/// # Errors
/// When the answer is damaged, the query times out, or its memory is used up.
pub fn read_answer<T: DeserializeOwned>(answer: &[u8], budget: &Budget) -> Result<T, QueryError> {
    budget.check()?;
    budget.reserve(READ_MEMORY * answer.len())?;
    serde_json::from_slice(answer).map_err(|cause| {
        QueryError::Busy(format!("the answer of a shard is damaged: {cause}; retry"))
    })
}

/// Returns the error of a damaged answer.
pub(crate) fn damaged_answer() -> QueryError {
    QueryError::Busy("the answer of a shard is damaged; retry".to_owned())
}

/// Returns the error of answers whose series changed between two questions.
pub(crate) fn changed_series() -> QueryError {
    QueryError::Busy("the series of a shard have changed; retry".to_owned())
}

/// Asks all shards a question whose answers are JSON. `own` returns the answer of this shard.
///
/// # Errors
/// See [`Budget::ask_shards`] and [`read_answer`].
pub fn ask_all<T: DeserializeOwned>(
    budget: &Budget,
    (kind, question): (&str, &impl Serialize),
    own: impl FnOnce() -> Result<T, QueryError>,
) -> Result<Vec<T>, QueryError> {
    let (own, answers) = budget.beside_shards(kind, &written(question)?, own)?;
    let others = answers.iter().map(|answer| read_answer(answer, budget));
    [Ok(own)].into_iter().chain(others).collect()
}
