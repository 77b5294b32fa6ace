//! Methods of the values in Alertmanager's templates, such as `.Alerts.Firing` and
//! `.StartsAt.Format "15:04"`.
//!
//! The library gotmpl supports only fields, so each method call is rewritten as a function call
//! before a template is executed. Must never know: the values of a template.

use gotmpl::{
    FuncMap, Value,
    parse::{BranchNode, CommandNode, Expr, ListNode, Node, PipeNode, Pos, SmolStr, TemplateNode},
};
use jiff::tz::TimeZone;

use super::{
    fault,
    functions::argument,
    text_value,
    times::{formatted, in_zone, time},
};

/// The prefix of the functions that replace methods; no template can write it.
const MARK: &str = "method ";
const METHODS: [&str; 12] = [
    "Firing",
    "Resolved",
    "SortedPairs",
    "Names",
    "Values",
    "Remove",
    "Format",
    "UTC",
    "Local",
    "Unix",
    "IsZero",
    "String",
];

/// Rewrites the method calls in a tree.
pub(super) fn rewrite(tree: &mut ListNode) {
    TreeRewriter.list(tree);
}

struct TreeRewriter;

impl TreeRewriter {
    /// Rewrites a list of nodes; the parser limits the depth of the recursion.
    fn list(&self, list: &mut ListNode) {
        for node in &mut list.nodes {
            match node {
                Node::List(node) => self.list(node),
                Node::Action(node) => self.pipe(&mut node.pipe),
                Node::If(node) | Node::Range(node) | Node::With(node) => self.branch(node),
                Node::Template(node) => self.template(node),
                Node::Define(node) => self.list(&mut node.body),
                Node::Text(_) | Node::Break(_) | Node::Continue(_) => {}
            }
        }
    }

    fn branch(&self, branch: &mut BranchNode) {
        self.pipe(&mut branch.pipe);
        self.list(&mut branch.body);
        branch.else_body.iter_mut().for_each(|list| self.list(list));
    }

    fn template(&self, template: &mut TemplateNode) {
        template.pipe.iter_mut().for_each(|pipe| self.pipe(pipe));
    }

    fn pipe(&self, pipe: &mut PipeNode) {
        for command in &mut pipe.commands {
            let args = std::mem::take(&mut command.args);
            let mut args = args.into_iter();
            let Some(first) = args.next() else { continue };
            let others: Vec<_> = args.map(|arg| self.expression(arg, Vec::new())).collect();
            command.args = if let Expr::Identifier(pos, name) = first {
                [vec![Expr::Identifier(pos, name)], others].concat()
            } else if others.is_empty() || !ends_in_method(&first) {
                // An expression without a method at its end accepts no arguments: the error is
                // reported at execution.
                [vec![self.expression(first, Vec::new())], others].concat()
            } else {
                vec![self.expression(first, others)]
            };
        }
    }

    /// Rewrites an expression whose last method gets these arguments.
    fn expression(&self, expression: Expr, arguments: Vec<Expr>) -> Expr {
        let (base, fields) = match expression {
            Expr::Field(pos, fields) => (Expr::Dot(pos), fields),
            Expr::Variable(pos, name, fields) => (Expr::Variable(pos, name, Vec::new()), fields),
            Expr::Chain(_, inner, fields) => (self.expression(*inner, Vec::new()), fields),
            Expr::Pipe(pos, mut pipe) => {
                self.pipe(&mut pipe);
                return Expr::Pipe(pos, pipe);
            }
            Expr::Identifier(..)
            | Expr::Dot(_)
            | Expr::String(..)
            | Expr::Number(..)
            | Expr::Bool(..)
            | Expr::Nil(_) => return expression,
        };
        let last = fields.len();
        let mut arguments = Some(arguments);
        fields.into_iter().enumerate().fold(base, |base, (at, name)| {
            if !is_method(&name) {
                return field(base, name);
            }
            let arguments = (at + 1 == last).then(|| arguments.take()).flatten();
            call(base, &name, arguments.unwrap_or_default())
        })
    }
}

fn is_method(name: &SmolStr) -> bool {
    METHODS.contains(&name.as_str())
}

fn ends_in_method(expression: &Expr) -> bool {
    let fields = match expression {
        Expr::Field(_, fields) | Expr::Variable(_, _, fields) | Expr::Chain(_, _, fields) => fields,
        Expr::Dot(_)
        | Expr::Identifier(..)
        | Expr::String(..)
        | Expr::Number(..)
        | Expr::Bool(..)
        | Expr::Nil(_)
        | Expr::Pipe(..) => return false,
    };
    fields.last().is_some_and(is_method)
}

fn field(base: Expr, name: SmolStr) -> Expr {
    if let Expr::Dot(pos) = base {
        return Expr::Field(pos, vec![name]);
    }
    if let Expr::Field(pos, fields) = base {
        return Expr::Field(pos, [fields, vec![name]].concat());
    }
    if let Expr::Variable(pos, variable, fields) = base {
        return Expr::Variable(pos, variable, [fields, vec![name]].concat());
    }
    Expr::Chain(base.pos(), Box::new(base), vec![name])
}

fn call(base: Expr, name: &str, arguments: Vec<Expr>) -> Expr {
    let pos: Pos = base.pos();
    let function = Expr::Identifier(pos, format!("{MARK}{name}").into());
    let args = [vec![function, base], arguments].concat();
    let commands = vec![CommandNode { pos, args }];
    Expr::Pipe(pos, PipeNode { pos, decl: Vec::new(), commands, is_assign: false })
}

/// Returns the functions that replace methods.
pub(super) fn functions() -> FuncMap {
    let mut map = FuncMap::new();
    let mut add = |name: &str, function: fn(&[Value]) -> gotmpl::Result<Value>| {
        map.insert(format!("{MARK}{name}"), std::sync::Arc::new(function));
    };
    add("Firing", |args| with_status(args, "firing"));
    add("Resolved", |args| with_status(args, "resolved"));
    add("SortedPairs", |args| Ok(Value::List(pairs(args)?.iter().map(pair).collect())));
    add("Names", |args| {
        Ok(Value::List(pairs(args)?.into_iter().map(|pair| text_value(&pair.0)).collect()))
    });
    add("Values", |args| Ok(Value::List(pairs(args)?.into_iter().map(|pair| pair.1).collect())));
    add("Remove", remove);
    add("Format", formatted);
    add("UTC", |args| in_zone(args, TimeZone::UTC));
    add("Local", |args| in_zone(args, TimeZone::UTC));
    add("String", |args| argument(args, 0));
    add("Unix", |args| {
        Ok(Value::Int(time(args)?.map_or(0, |time| time.0.timestamp().as_second())))
    });
    add("IsZero", |args| Ok(Value::Bool(time(args)?.is_none())));
    map
}

fn with_status(args: &[Value], status: &str) -> gotmpl::Result<Value> {
    let Value::List(all) = argument(args, 0)? else {
        return Err(fault("the value is not a list of alerts"));
    };
    let has_status = |alert: &&Value| alert.field("Status").and_then(Value::as_str) == Some(status);
    Ok(Value::List(all.iter().filter(has_status).cloned().collect()))
}

/// Returns names and values; a map is in Alertmanager's order, with the alert's name first.
fn pairs(args: &[Value]) -> gotmpl::Result<Vec<(String, Value)>> {
    let labels = argument(args, 0)?;
    if let Value::Map(map) = &labels {
        let labels = map.iter().map(|(name, value)| (name.to_string(), value.clone()));
        let mut pairs: Vec<_> = labels.collect();
        pairs.sort_by_key(|(name, _)| (name != "alertname", name.clone()));
        return Ok(pairs);
    }
    let Value::List(list) = &labels else { return Err(fault("the value has no labels")) };
    let read = |pair: &Value| {
        let name = pair.field("Name").and_then(Value::as_str)?.to_owned();
        Some((name, pair.field("Value")?.clone()))
    };
    list.iter()
        .map(|pair| read(pair).ok_or_else(|| fault("the list has an entry that is not a label")))
        .collect()
}

fn pair((name, value): &(String, Value)) -> Value {
    let fields = [("Name".into(), text_value(name)), ("Value".into(), value.clone())];
    Value::Map(std::sync::Arc::new(fields.into()))
}

fn remove(args: &[Value]) -> gotmpl::Result<Value> {
    let Value::List(names) = argument(args, 1)? else {
        return Err(fault("Remove: the argument is not a list"));
    };
    let is_kept = |name: &str| !names.iter().any(|removed| removed.as_str() == Some(name));
    let kept = pairs(args)?.into_iter().filter(|(name, _)| is_kept(name));
    let kept = kept.map(|(name, value)| (name.into(), value));
    Ok(Value::Map(std::sync::Arc::new(kept.collect())))
}
