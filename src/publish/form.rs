//! The forms of documents, each named after the shape of its slots.

use std::str::FromStr;

/// The form of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Slots by index, each with all values of its cell, and the totals of the document.
    #[default]
    Nested,
    /// A list of parts with their dates and sums.
    Levels,
    /// A list of measurements with their times, and the sum and number of samples.
    Bucket,
    /// One value per slot, by the index of the slot.
    Slots,
}

impl Form {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Nested, "nested"),
        (Self::Levels, "levels"),
        (Self::Bucket, "bucket"),
        (Self::Slots, "slots"),
    ];

    /// Returns the word of the form in the settings.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(form, _)| *form == self).map_or("", |(_, word)| *word)
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(_, known)| *known == word);
        found.map(|(form, _)| form).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|(_, word)| *word).collect();
            format!("{word:?} is no form of documents; use one of {}", known.join(", "))
        })
    }
}
