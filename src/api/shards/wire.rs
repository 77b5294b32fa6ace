//! The forms of requests between nodes, and of their answers.

use granary_protocol::IngestAnswer;
use serde::{Deserialize, Serialize};

use crate::{actors::RowsAnswer, ingest::protocol::BatchEncoding};

/// The encodings of batches and their words.
const ENCODINGS: [(BatchEncoding, &str); 4] = [
    (BatchEncoding::Bson, "bson"),
    (BatchEncoding::Json, "json"),
    (BatchEncoding::Packed, "packed"),
    (BatchEncoding::Updates, "updates"),
];

/// The parameters of batches.
#[derive(Debug, Deserialize)]
pub(super) struct BatchesQuery {
    /// The project.
    pub(super) project: String,
    encoding: String,
    /// True when the samples replace the stored ones.
    pub(super) replace: bool,
}

impl BatchesQuery {
    pub(super) fn new(project: String, encoding: BatchEncoding, replace: bool) -> Self {
        let word = ENCODINGS.iter().find(|(known, _)| *known == encoding).map(|(_, word)| *word);
        Self { project, encoding: word.unwrap_or_default().to_owned(), replace }
    }

    pub(super) fn pairs(self) -> Vec<(&'static str, String)> {
        let replace = self.replace.to_string();
        vec![("project", self.project), ("encoding", self.encoding), ("replace", replace)]
    }

    /// Returns the encoding in which the sender wrote the batches.
    pub(super) fn encoding(&self) -> Option<BatchEncoding> {
        let mut known = ENCODINGS.iter();
        known.find(|(_, word)| *word == self.encoding).map(|(encoding, _)| *encoding)
    }
}

/// The parameters of rows.
#[derive(Debug, Deserialize)]
pub(super) struct RowsQuery {
    /// The project.
    pub(super) project: String,
    /// The sender that is charged for new series.
    pub(super) sender: String,
}

/// The parameters of a question.
#[derive(Debug, Deserialize)]
pub(super) struct AskQuery {
    /// The project.
    pub(super) project: String,
    /// The kind of the question.
    pub(super) kind: String,
    /// The time for the answer in milliseconds.
    pub(super) time_ms: u64,
}

/// The answer to rows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SentRowsAnswer {
    answer: IngestAnswer,
    refused_points: u64,
}

impl From<RowsAnswer> for SentRowsAnswer {
    fn from(RowsAnswer { answer, refused_points, .. }: RowsAnswer) -> Self {
        Self { answer, refused_points }
    }
}

impl From<SentRowsAnswer> for RowsAnswer {
    fn from(SentRowsAnswer { answer, refused_points }: SentRowsAnswer) -> Self {
        Self { answer, refused_points, ..Self::default() }
    }
}
