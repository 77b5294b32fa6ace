//! Binary operators between two vectors: which series of one side meet which of the other.
//!
//! Series are grouped by the labels that they are matched on; what meets is decided anew at each
//! time, because series come and go. Must never know: the store, the tree.

use std::collections::HashMap;

use promql_parser::parser::{BinModifier, LabelModifier, VectorMatchCardinality};

use super::{
    Labels, PromqlError,
    columns::{ABSENT, Grid, Series, is_present, join_same},
    operators::Operator,
};

/// How series are matched.
struct Matching<'a> {
    labels: &'a [String],
    /// Only these labels count, not all others.
    on: bool,
    /// Labels that the result takes from the one side.
    included: &'a [String],
    many: Many,
    yes_or_no: bool,
}

/// Which side may have several series that meet one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Many {
    Neither,
    Left,
    Right,
}

impl<'a> Matching<'a> {
    fn new(modifier: Option<&'a BinModifier>) -> Self {
        let matching = modifier.and_then(|modifier| modifier.matching.as_ref());
        let card = modifier.map(|modifier| &modifier.card);
        let many = match card {
            Some(VectorMatchCardinality::ManyToOne(_)) => Many::Left,
            Some(VectorMatchCardinality::OneToMany(_)) => Many::Right,
            Some(VectorMatchCardinality::OneToOne | VectorMatchCardinality::ManyToMany) | None => {
                Many::Neither
            }
        };
        let included = card.and_then(VectorMatchCardinality::labels);
        Self {
            labels: matching.map_or(&[], |labels| &labels.labels().labels),
            on: matching.is_some_and(LabelModifier::is_include),
            included: included.map_or(&[], |labels| &labels.labels),
            many,
            yes_or_no: modifier.is_some_and(|modifier| modifier.return_bool),
        }
    }

    /// The labels that two series must share to meet.
    fn signature(&self, labels: &Labels) -> Labels {
        if self.on { labels.only(self.labels) } else { labels.without(self.labels) }
    }

    /// The labels of what two series give.
    fn result(&self, many: &Labels, one: &Labels, operator: Operator) -> Labels {
        let mut labels = many.clone();
        if operator.drops_metric() {
            labels = labels.without_metric();
        }
        if self.many == Many::Neither {
            labels = if self.on {
                labels.only(self.labels)
            } else {
                labels.filtered(|name| !self.labels.iter().any(|own| own == name))
            };
        }
        for name in self.included {
            labels = labels.with(name, one.get(name));
        }
        labels
    }
}

/// Series of both sides that share a signature, by index.
#[derive(Default)]
struct Group {
    signature: Labels,
    left: Vec<usize>,
    right: Vec<usize>,
}

fn groups(left: &[Series], right: &[Series], matching: &Matching<'_>) -> Vec<Group> {
    let mut places: HashMap<Labels, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    let sides = [(left, true), (right, false)];
    for (series, is_left) in sides {
        for (index, one) in series.iter().enumerate() {
            let signature = matching.signature(&one.labels);
            let place = *places.entry(signature).or_insert_with_key(|signature| {
                groups.push(Group { signature: signature.clone(), ..Group::default() });
                groups.len() - 1
            });
            let group = &mut groups[place];
            if is_left { group.left.push(index) } else { group.right.push(index) }
        }
    }
    groups
}

/// What an operator gives between two vectors.
pub(super) fn between_vectors(
    left: Vec<Series>,
    right: Vec<Series>,
    operator: Operator,
    modifier: Option<&BinModifier>,
    grid: &Grid,
) -> Result<Vec<Series>, PromqlError> {
    let matching = Matching::new(modifier);
    if modifier.is_some_and(|own| own.fill_values.lhs.is_some() || own.fill_values.rhs.is_some()) {
        return Err(PromqlError::Execution(
            "the fill modifiers are not supported: use `or` with a default".to_owned(),
        ));
    }
    match operator {
        Operator::And => Ok(kept_where(left, &right, &matching, true)),
        Operator::Unless => Ok(kept_where(left, &right, &matching, false)),
        Operator::Or => {
            let missing = kept_where(right, &left, &matching, false);
            join_same(left.into_iter().chain(missing).collect())
        }
        Operator::Arithmetic(_) | Operator::Comparison(_) => {
            let (many, one) =
                if matching.many == Many::Right { (right, left) } else { (left, right) };
            matched(&many, &one, operator, &matching, grid)
        }
    }
}

/// Keeps values where the other side has, or has not, a series of the same signature.
fn kept_where(
    mut own: Vec<Series>,
    other: &[Series],
    matching: &Matching<'_>,
    wanted: bool,
) -> Vec<Series> {
    for group in groups(&own, other, matching) {
        for index in &group.left {
            for (at, value) in own[*index].values.iter_mut().enumerate() {
                let there = group
                    .right
                    .iter()
                    .any(|other_index| is_present(other[*other_index].values[at]));
                if there != wanted {
                    *value = ABSENT;
                }
            }
        }
    }
    own.retain(Series::has_values);
    own
}

/// Arithmetic and comparisons; `many` is the left side unless `group_right` says otherwise.
fn matched(
    many: &[Series],
    one: &[Series],
    operator: Operator,
    matching: &Matching<'_>,
    grid: &Grid,
) -> Result<Vec<Series>, PromqlError> {
    let any = any_present(many, grid);
    let mut results = Results::default();
    for group in groups(many, one, matching) {
        check_unique(&group, one, &any, matching)?;
        // Times at which a series of the many side has met one already.
        let mut met =
            vec![
                false;
                if matching.many != Many::Neither || group.left.len() < 2 { 0 } else { grid.count }
            ];
        for left in group.left.iter().map(|index| &many[*index]) {
            for right in group.right.iter().map(|index| &one[*index]) {
                let labels = matching.result(&left.labels, &right.labels, operator);
                let values = combined(left, right, operator, matching);
                if !met.is_empty() {
                    for (met, _) in met.iter_mut().zip(&values).filter(|(_, v)| is_present(**v)) {
                        if std::mem::replace(met, true) {
                            return Err(execution(
                                "multiple matches for labels: many-to-one matching must be \
                                 explicit (group_left/group_right)",
                            ));
                        }
                    }
                }
                let drop_metric = left.drop_metric || matching.yes_or_no;
                results.add(Series { labels, drop_metric, values })?;
            }
        }
    }
    let mut series = results.series;
    series.retain(Series::has_values);
    Ok(series)
}

fn combined(many: &Series, one: &Series, operator: Operator, matching: &Matching<'_>) -> Vec<f64> {
    let pairs = many.values.iter().zip(&one.values);
    pairs
        .map(|(many, one)| {
            if !is_present(*many) || !is_present(*one) {
                return ABSENT;
            }
            let (left, right) =
                if matching.many == Many::Right { (*one, *many) } else { (*many, *one) };
            // A comparison keeps the value of the left side, whichever has many.
            operator.apply(left, right, left, matching.yes_or_no)
        })
        .collect()
}

/// Times at which any series has a value.
fn any_present(series: &[Series], grid: &Grid) -> Vec<bool> {
    let mut any = vec![false; grid.count];
    for one in series {
        for (any, value) in any.iter_mut().zip(&one.values) {
            *any |= is_present(*value);
        }
    }
    any
}

/// At no time may two series of the one side share a signature.
fn check_unique(
    group: &Group,
    one: &[Series],
    any: &[bool],
    matching: &Matching<'_>,
) -> Result<(), PromqlError> {
    if group.right.len() < 2 {
        return Ok(());
    }
    for at in (0..any.len()).filter(|at| any[*at]) {
        let mut there =
            group.right.iter().map(|index| &one[*index]).filter(|one| is_present(one.values[at]));
        if let (Some(first), Some(second)) = (there.next(), there.next()) {
            let side = if matching.many == Many::Right { "left" } else { "right" };
            return Err(PromqlError::Execution(format!(
                "found duplicate series for the match group {} on the {side} hand-side of the \
                 operation: [{}, {}];many-to-many matching not allowed: matching labels must be \
                 unique on one side",
                group.signature, second.labels, first.labels
            )));
        }
    }
    Ok(())
}

/// Results, those with the same labels joined.
#[derive(Default)]
struct Results {
    places: HashMap<Labels, usize>,
    series: Vec<Series>,
}

impl Results {
    fn add(&mut self, series: Series) -> Result<(), PromqlError> {
        let Some(place) = self.places.get(&series.labels) else {
            self.places.insert(series.labels.clone(), self.series.len());
            self.series.push(series);
            return Ok(());
        };
        let own = &mut self.series[*place].values;
        for (own, new) in own.iter_mut().zip(&series.values).filter(|(_, new)| is_present(**new)) {
            if is_present(*own) {
                return Err(execution(
                    "multiple matches for labels: grouping labels must ensure unique matches",
                ));
            }
            *own = *new;
        }
        Ok(())
    }
}

fn execution(text: &str) -> PromqlError {
    PromqlError::Execution(text.to_owned())
}
