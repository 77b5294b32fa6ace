//! Analysis of a template's tree before it is executed: missing functions, templates and variables
//! are reported without running anything, and each loop and each template call is made to check its
//! limits first.
//!
//! Must never know: what the functions do.

use std::collections::{BTreeMap, BTreeSet};

use gotmpl::{
    FuncMap,
    parse::{
        ActionNode, BranchNode, CommandNode, Expr, ListNode, Node, PipeNode, SmolStr, TemplateNode,
    },
};

/// The function that checks the limits, and a variable that takes its result; no template can write
/// either name.
pub(super) const ASK: &str = "ask first";
const ASKED: &str = "$ asked";
/// The variable that every template has.
const ROOT: &str = "$";
/// The functions that belong to the language.
const BUILT_IN: [&str; 13] =
    ["and", "or", "not", "len", "index", "call", "eq", "ne", "lt", "le", "gt", "ge", "break"];

/// The functions, templates and variables that trees need.
#[derive(Debug, Default)]
pub(super) struct Reading {
    functions: BTreeSet<String>,
    templates: BTreeSet<String>,
    /// The variables in scope.
    variables: Vec<SmolStr>,
    unknown_variable: Option<String>,
}

impl Reading {
    /// Reads a tree that is executed with these variables and `$`.
    pub(super) fn tree(&mut self, tree: &mut ListNode, variables: &[&str]) {
        self.variables = variables.iter().chain([&ROOT]).map(|own| (*own).into()).collect();
        self.list(tree);
    }

    /// Reads a list of nodes, which other templates may call.
    pub(super) fn defined(&mut self, tree: &mut ListNode) {
        self.tree(tree, &[]);
        ask_first(tree);
    }

    /// Returns an error about the first missing function or template.
    pub(super) fn missing(
        &self,
        functions: &FuncMap,
        templates: &BTreeMap<String, ListNode>,
    ) -> Option<String> {
        let is_known =
            |name: &String| functions.contains_key(name) || BUILT_IN.contains(&name.as_str());
        let function = self.functions.iter().find(|name| !is_known(name));
        let template = self.templates.iter().find(|name| !templates.contains_key(*name));
        let variable = self.unknown_variable.as_ref();
        function
            .map(|name| format!("the function {name:?} is not known"))
            .or_else(|| template.map(|name| format!("the template {name:?} is not defined")))
            .or_else(|| variable.map(|name| format!("the variable {name:?} is not defined")))
    }

    /// The depth is bounded by that of the parser.
    fn list(&mut self, list: &mut ListNode) {
        for node in &mut list.nodes {
            match node {
                Node::List(own) => self.list(own),
                Node::Action(own) => self.pipe(&own.pipe),
                Node::If(own) | Node::With(own) => self.branch(own),
                Node::Range(own) => {
                    self.branch(own);
                    ask_first(&mut own.body);
                }
                Node::Template(own) => self.template(own),
                Node::Define(_) | Node::Text(_) | Node::Break(_) | Node::Continue(_) => {}
            }
        }
    }

    /// Reads a branch; its variables end with it.
    fn branch(&mut self, own: &mut BranchNode) {
        let before = self.variables.len();
        self.pipe(&own.pipe);
        let within = self.variables.len();
        self.list(&mut own.body);
        self.variables.truncate(within);
        own.else_body.iter_mut().for_each(|list| self.list(list));
        self.variables.truncate(before);
    }

    fn template(&mut self, own: &TemplateNode) {
        self.templates.insert(own.name.to_string());
        own.pipe.iter().for_each(|pipe| self.pipe(pipe));
    }

    fn pipe(&mut self, own: &PipeNode) {
        own.commands.iter().flat_map(|command| &command.args).for_each(|arg| self.expression(arg));
        if own.is_assign {
            own.decl.iter().for_each(|name| self.variable(name));
        } else {
            self.variables.extend(own.decl.iter().cloned());
        }
    }

    fn variable(&mut self, name: &SmolStr) {
        if !self.variables.contains(name) {
            self.unknown_variable.get_or_insert_with(|| name.to_string());
        }
    }

    fn expression(&mut self, own: &Expr) {
        match own {
            Expr::Identifier(_, name) => drop(self.functions.insert(name.to_string())),
            Expr::Variable(_, name, _) => self.variable(name),
            Expr::Chain(_, inner, _) => self.expression(inner),
            Expr::Pipe(_, pipe) => self.pipe(pipe),
            Expr::Dot(_)
            | Expr::Field(..)
            | Expr::String(..)
            | Expr::Number(..)
            | Expr::Bool(..)
            | Expr::Nil(_) => {}
        }
    }
}

fn ask_first(list: &mut ListNode) {
    let pos = list.pos;
    let commands = vec![CommandNode { pos, args: vec![Expr::Identifier(pos, ASK.into())] }];
    let pipe = PipeNode { pos, decl: vec![ASKED.into()], commands, is_assign: false };
    list.nodes.insert(0, Node::Action(ActionNode { pos, pipe }));
}
