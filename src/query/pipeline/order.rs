//! The order of values, for sorting, grouping, conditions and expressions.
//!
//! Tags are texts. A text that spells a number is sorted among the numbers, before all other texts,
//! and compares with a number as a number. Two texts are equal only when their spelling is equal.
//! Must never know: stages.

use std::{cmp::Ordering, sync::Arc};

use super::{notation::date, value::Value};

/// Compares values for sorting and grouping. Only values with the same spelling are equal.
pub(super) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::List(a), Value::List(b)) => {
            let pairs = a.iter().zip(b).map(|(a, b)| compare(a, b));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or(a.len().cmp(&b.len()))
        }
        (Value::Fields(a), Value::Fields(b)) => {
            let pair = |((a_name, a), (b_name, b)): ((&Arc<str>, _), (&Arc<str>, _))| {
                a_name.cmp(b_name).then_with(|| compare(a, b))
            };
            let mut pairs = a.iter().zip(b.iter()).map(pair);
            pairs.find(|order| order.is_ne()).unwrap_or(a.len().cmp(&b.len()))
        }
        (Value::Text(a), Value::Text(b)) if a == b => Ordering::Equal,
        _ => match (a.to_number(), b.to_number()) {
            (Some(number_a), Some(number_b)) => compare_numbers(&number_a, &number_b)
                .then_with(|| a.rank().cmp(&b.rank()))
                .then_with(|| a.as_text().cmp(&b.as_text())),
            (None, None) => a.rank().cmp(&b.rank()).then_with(|| a.as_text().cmp(&b.as_text())),
            (number_a, number_b) => rank(a, number_a.as_ref()).cmp(&rank(b, number_b.as_ref())),
        },
    }
}

fn rank(value: &Value, number: Option<&Value>) -> u8 {
    number.unwrap_or(value).rank()
}

/// Compares two values in a condition; `None` when their types differ.
pub(super) fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Text(_), Value::Text(_)) => Some(compare(a, b)),
        (Value::Date(at), Value::Text(text)) => Some(at.cmp(&date(text)?)),
        (Value::Text(text), Value::Date(at)) => Some(date(text)?.cmp(at)),
        _ if a.rank() == b.rank() => Some(compare(a, b)),
        _ => Some(compare_numbers(&a.to_number()?, &b.to_number()?)),
    }
}

/// Compares two values in an expression, where values of different types are ordered too.
pub(super) fn order_all(a: &Value, b: &Value) -> Ordering {
    order(a, b).unwrap_or_else(|| compare(a, b))
}

/// Compares numbers. Zero has no sign, and NaN precedes all numbers.
fn compare_numbers(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Int(a), Value::Float(b)) => compare_whole(*a, *b),
        (Value::Float(a), Value::Int(b)) => compare_whole(*b, *a).reverse(),
        _ => {
            let (a, b) = (a.number().unwrap_or(f64::NAN), b.number().unwrap_or(f64::NAN));
            a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
        }
    }
}

/// Compares exactly, even where a float cannot represent the integer; otherwise the order would not
/// be total.
fn compare_whole(whole: i64, float: f64) -> Ordering {
    if float.is_nan() {
        return Ordering::Greater;
    }
    let cut = float.trunc();
    let order = if cut >= i64::MAX as f64 {
        Ordering::Less
    } else if cut < i64::MIN as f64 {
        Ordering::Greater
    } else {
        whole.cmp(&(cut as i64))
    };
    order.then_with(|| 0.0_f64.partial_cmp(&(float - cut)).unwrap_or(Ordering::Equal))
}

/// A value as the key of a group.
#[derive(Debug, Clone)]
pub(super) struct GroupKey(pub(super) Value);

impl PartialEq for GroupKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for GroupKey {}

impl PartialOrd for GroupKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for GroupKey {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::UnixMillis;

    fn any_value() -> impl Strategy<Value = Value> {
        let text = prop::sample::select(vec![
            "7",
            "07",
            "7.0",
            "-2.5",
            "10",
            "9",
            "1e3",
            "1000",
            "web1",
            "2026-01-01",
            "",
            "-",
            "+7",
            "9007199254740993",
            "inf",
            "nan",
            "10.0.0.1",
        ]);
        let number = prop::sample::select(vec![
            0.0,
            -0.0,
            7.0,
            7.5,
            1e3,
            9_007_199_254_740_992.0,
            9.3e18,
            -9.3e18,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ]);
        let whole_number =
            prop::sample::select(vec![0, 7, 10, i64::MAX, i64::MIN, 9_007_199_254_740_993]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            whole_number.prop_map(Value::Int),
            number.prop_map(Value::Float),
            text.prop_map(Value::text),
            (0..3_i64).prop_map(|at| Value::Date(UnixMillis(at))),
        ];
        leaf.prop_recursive(2, 6, 3, |inner| {
            prop::collection::vec(inner, 0..3).prop_map(Value::List)
        })
    }

    proptest! {
        /// Sorting and grouping rely on a total order.
        #[test]
        fn the_order_is_total(a in any_value(), b in any_value(), c in any_value()) {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            prop_assert!(compare(&a, &a).is_eq());
            let [mut low, mut mid, mut high] = [&a, &b, &c];
            if compare(low, mid).is_gt() { std::mem::swap(&mut low, &mut mid); }
            if compare(mid, high).is_gt() { std::mem::swap(&mut mid, &mut high); }
            if compare(low, mid).is_gt() { std::mem::swap(&mut low, &mut mid); }
            prop_assert!(compare(low, high).is_le(), "{low:?} {mid:?} {high:?}");
            prop_assert_eq!(order(&a, &b), order(&b, &a).map(Ordering::reverse));
        }

        /// A tag compares with a number like the number that it spells.
        #[test]
        fn texts_that_spell_numbers_compare_like_numbers(tag in -2000..2000_i32, literal in -2000..2000_i32) {
            let (tag, literal) = (f64::from(tag) / 8.0, f64::from(literal) / 8.0);
            let expected = tag.partial_cmp(&literal);
            for spelling in [format!("{tag}"), format!("{tag:.3}"), format!("{tag:e}")] {
                prop_assert_eq!(order(&Value::text(&spelling), &Value::Float(literal)), expected);
            }
        }
    }

    #[test]
    fn numbers_are_sorted_before_texts() {
        let texts = ["web1", "10", "9", "", "1e1", "2", "10.0", "b"];
        let mut sorted: Vec<_> = texts.iter().map(|text| Value::text(text)).collect();
        sorted.push(Value::Int(9));
        sorted.sort_by(compare);
        let shown = serde_json::to_string(&sorted).unwrap();
        assert_eq!(shown, r#"["2",9,"9","10","10.0","1e1","","b","web1"]"#);
    }
}
