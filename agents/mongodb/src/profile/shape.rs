//! The shape of a profiled operation: its filter, sort and stages with all values replaced, so that
//! equal operations on different values have one series, and no value leaves the agent.

use mongodb::bson::{Bson, Document};

use crate::field::text;

/// The maximum length of a shape in bytes; the rest is replaced by a hash.
const SHAPE_BYTES_MAX: usize = 200;
/// The length of the text after which the rest of an operation is not read.
const READ_BYTES_MAX: usize = 2_000;
/// The depth after which a document counts as a value.
const DEPTH_MAX: usize = 12;
/// The maximum number of digits in a part of a field's name; a longer number is a value.
const DIGITS_MAX: usize = 3;
const NAME_BYTES_MAX: usize = 60;
/// The parts of commands that select documents: `find`, `count`, `update`, `aggregate`, `distinct`.
const PARTS: [&str; 5] = ["filter", "query", "q", "pipeline", "sort"];

/// Returns the operation of a document of `system.profile`, such as `find`.
pub(super) fn operation_of(entry: &Document) -> &str {
    let op = text(entry, "op").unwrap_or_default();
    let command = entry.get_document("command").ok().and_then(|command| command.keys().next());
    let name = match op {
        "query" | "command" => command.map_or(op, String::as_str),
        _ => op,
    };
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphabetic()) && name.len() <= 30;
    if is_name && !name.is_empty() { name } else { "other" }
}

/// Returns the shape of a document of `system.profile`.
pub(super) fn shape_of(entry: &Document) -> String {
    let document = |field| entry.get_document(field).ok();
    // A `getMore` has the shape of the command that opened its cursor.
    let command = document("originatingCommand").or_else(|| document("command"));
    let mut shape = String::new();
    for part in PARTS {
        let Some(value) = command.and_then(|command| command.get(part)) else { continue };
        let is_empty = value.as_document().is_some_and(Document::is_empty);
        if is_empty || shape.len() > READ_BYTES_MAX {
            continue;
        }
        if part == "sort" {
            shape.push_str(" sort ");
        }
        push_value(value, part == "sort", 0, &mut shape);
    }
    shorten(if shape.is_empty() { "{}".to_owned() } else { shape })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a value of any type, also of later ones")]
fn push_value(value: &Bson, shows_order: bool, depth: usize, shape: &mut String) {
    if shape.len() > READ_BYTES_MAX {
        return;
    }
    match value {
        Bson::Document(document) if depth < DEPTH_MAX => {
            shape.push('{');
            for (index, (name, value)) in document.iter().enumerate() {
                if shape.len() > READ_BYTES_MAX {
                    break;
                }
                shape.push_str(if index == 0 { "" } else { ", " });
                push_name(name, shape);
                shape.push_str(": ");
                push_value(value, shows_order, depth + 1, shape);
            }
            shape.push('}');
        }
        Bson::Array(values) if depth < DEPTH_MAX => push_array(values, depth, shape),
        // The order of a sort is part of the shape.
        Bson::Int32(1) | Bson::Int64(1) if shows_order => shape.push('1'),
        Bson::Int32(-1) | Bson::Int64(-1) if shows_order => shape.push_str("-1"),
        _ => shape.push('?'),
    }
}

/// Adds the different shapes of the documents of an array. All other values are one.
fn push_array(values: &[Bson], depth: usize, shape: &mut String) {
    let mut shapes: Vec<String> = Vec::new();
    let mut length = 0;
    for value in values.iter().filter(|value| value.as_document().is_some()) {
        let mut one = String::new();
        push_value(value, false, depth + 1, &mut one);
        if !shapes.contains(&one) {
            length += one.len();
            shapes.push(one);
        }
        if length > READ_BYTES_MAX {
            break;
        }
    }
    if shapes.is_empty() {
        shape.push('?');
        return;
    }
    shape.push('[');
    shape.push_str(&shapes.join(", "));
    shape.push(']');
}

/// Adds a path of fields. A part that looks like a number or an identifier is replaced, and the
/// whole path if it contains other characters than names do, such as an address.
fn push_name(name: &str, shape: &mut String) {
    let is_word = |c: char| c.is_alphabetic() || c.is_ascii_digit() || matches!(c, '_' | '-');
    if name.split('.').any(|part| !part.strip_prefix('$').unwrap_or(part).chars().all(is_word)) {
        return shape.push('?');
    }
    let is_name = |part: &str| {
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        part.chars().any(char::is_alphabetic)
            && digits <= DIGITS_MAX
            && part.len() <= NAME_BYTES_MAX
    };
    let parts = name.split('.').map(|part| if is_name(part) { part } else { "?" });
    for (index, part) in parts.enumerate() {
        shape.push_str(if index == 0 { "" } else { "." });
        shape.push_str(part);
    }
}

/// Shortens a shape. A hash keeps long shapes apart.
fn shorten(shape: String) -> String {
    if shape.len() <= SHAPE_BYTES_MAX {
        return shape;
    }
    // FNV-1a: a name must be the same in all versions of the agent.
    let hash = shape
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let kept = (0..=SHAPE_BYTES_MAX - 12).rev().find(|end| shape.is_char_boundary(*end));
    let kept = kept.unwrap_or(0);
    let start = shape.get(..kept).unwrap_or_default();
    format!("{start}.. {hash:08x}")
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{DateTime, doc, oid::ObjectId};

    use super::*;

    fn entry(op: &str, command: Document) -> Document {
        doc! { "op": op, "ns": "shop.orders", "command": command }
    }

    #[test]
    fn equal_operations_on_other_values_have_one_shape() {
        let find = |customer: Bson, from: i64| {
            let filter = doc! {
                "customer": customer, "total": { "$gt": from },
                "$or": [{ "state": "new" }, { "state": "paid" }, { "priority": { "$in": [1, 2] } }],
            };
            entry("query", doc! { "find": "orders", "filter": filter, "sort": { "at": -1 } })
        };
        let expected = "{customer: ?, total: {$gt: ?}, $or: [{state: ?}, {priority: {$in: ?}}]} \
                        sort {at: -1}";
        for customer in [Bson::from("ann@example.com"), Bson::from(5), Bson::Null] {
            let entry = find(customer, 100);
            assert_eq!((operation_of(&entry), shape_of(&entry).as_str()), ("find", expected));
        }
    }

    #[test]
    fn each_command_has_its_operation_and_shape() {
        let stages = vec![doc! { "$match": { "a": 1 } }, doc! { "$group": { "_id": "$secret" } }];
        let get_more = doc! {
            "op": "getmore", "command": { "getMore": 77_i64, "collection": "orders" },
            "originatingCommand": { "find": "orders", "filter": { "b": "secret" } },
        };
        for (entry, operation, shape) in [
            (
                entry("command", doc! { "aggregate": "orders", "pipeline": stages }),
                "aggregate",
                "[{$match: {a: ?}}, {$group: {_id: ?}}]",
            ),
            (
                entry("update", doc! { "q": { "_id": ObjectId::new() }, "u": { "x": 1 } }),
                "update",
                "{_id: ?}",
            ),
            (entry("remove", doc! { "q": {}, "limit": 0 }), "remove", "{}"),
            (entry("insert", doc! { "insert": "orders" }), "insert", "{}"),
            (
                entry("command", doc! { "count": "orders", "query": { "at": DateTime::now() } }),
                "count",
                "{at: ?}",
            ),
            (get_more, "getmore", "{b: ?}"),
            // A command that is too long for the profiler.
            (entry("query", doc! { "$truncated": "{ find: \"secret" }), "other", "{}"),
            (doc! {}, "other", "{}"),
        ] {
            assert_eq!((operation_of(&entry), shape_of(&entry).as_str()), (operation, shape));
        }
    }

    #[test]
    fn no_value_is_part_of_a_shape_even_as_the_name_of_a_field() {
        let filter = doc! {
            "users.507f1f77bcf86cd799439011.name": "secret", "ann.b@example.com": 1,
            "items.0.sku": "secret", "line_2.größe": 3, "4711 0815": { "$regex": "secret" },
        };
        let shape = shape_of(&entry("query", doc! { "find": "c", "filter": filter }));
        let expected = "{users.?.name: ?, ?: ?, items.?.sku: ?, line_2.größe: ?, ?: {$regex: ?}}";
        assert_eq!(shape, expected);
    }

    #[test]
    fn a_shape_is_bounded_and_long_shapes_stay_apart() {
        let long = |last: &str| {
            let mut filter: Document =
                ('a'..='z').map(|c| (format!("field_{c}"), Bson::Int32(1))).collect();
            filter.insert(last, 1);
            shape_of(&entry("query", doc! { "find": "c", "filter": filter }))
        };
        assert!(long("x").len() <= SHAPE_BYTES_MAX && long("x") != long("y"));
        assert_eq!(long("x"), long("x"));
        let deep = (0..150).fold(Bson::Int32(1), |inner, _| Bson::Document(doc! { "a": inner }));
        let wide: Vec<Bson> = (0..10_000)
            .map(|n| Bson::Document(doc! { format!("f{}", "x".repeat(n % 50)): 1 }))
            .collect();
        for filter in [doc! { "deep": deep }, doc! { "$or": wide }] {
            let shape = shape_of(&entry("query", doc! { "find": "c", "filter": filter }));
            assert!(shape.len() <= SHAPE_BYTES_MAX, "{shape}");
        }
    }
}
