//! `count_values`: an aggregation that makes labels of values.
//!
//! Must never know: the store.

use std::collections::HashMap;

use promql_parser::parser::{Expr, LabelModifier};

use super::fold::Group;
use crate::{
    model::METRIC_TAG,
    query::promql::{
        Labels, PromqlError,
        evaluate::expression::Evaluator,
        parse::literals::{is_label_name, quoted},
        value::{
            numbers::text_of,
            series::{ABSENT, Series, Value, is_present},
            steps::Grid,
        },
    },
};

/// What a new series takes for its labels, about: those of its group are shared.
const COUNTED_BYTES: usize = 512;

impl Evaluator<'_> {
    /// `count_values`: how many series of a group have each value, which becomes a label.
    pub(crate) fn count_values(
        &self,
        input: &[Series],
        groups: Vec<Group>,
        parameter: Option<&Expr>,
        modifier: Option<&LabelModifier>,
        grid: &Grid,
    ) -> Result<Vec<Series>, PromqlError> {
        let name = match parameter.map(|parameter| self.value(parameter, grid)).transpose()? {
            Some(Value::Text(name)) => name,
            Some(Value::Scalar(_) | Value::Vector(_)) | None => String::new(),
        };
        if !is_label_name(&name) {
            return Err(PromqlError::Execution(format!("invalid label name {}", quoted(&name))));
        }
        // What `without` takes away it takes away after the value was put there.
        let dropped = matches!(modifier, Some(LabelModifier::Exclude(names))
            if name == METRIC_TAG || names.labels.contains(&name));
        let mut places: HashMap<Labels, usize> = HashMap::new();
        let mut out: Vec<Series> = Vec::new();
        for group in groups {
            for index in &group.members {
                self.check_time()?;
                for (at, value) in input[*index].values.iter().enumerate() {
                    if !is_present(*value) {
                        continue;
                    }
                    let labels = if dropped {
                        group.labels.clone()
                    } else {
                        group.labels.with(&name, &text_of(*value))
                    };
                    let place = if let Some(place) = places.get(&labels) {
                        *place
                    } else {
                        self.check_points(out.len() + 1, grid.count)?;
                        self.limits.take(COUNTED_BYTES + name.len())?;
                        places.insert(labels.clone(), out.len());
                        let values = vec![ABSENT; grid.count];
                        let drop_metric = group.drop_metric && name != METRIC_TAG;
                        out.push(Series { labels, drop_metric, values });
                        out.len() - 1
                    };
                    let own = &mut out[place].values[at];
                    *own = if is_present(*own) { *own + 1.0 } else { 1.0 };
                }
            }
        }
        Ok(out)
    }
}
