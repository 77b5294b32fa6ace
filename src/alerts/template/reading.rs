//! The functions, templates and variables that a template needs, found in its parse tree without
//! executing it.
//!
//! Unknown names are reported, and a check of the limits is inserted at the beginning of each loop
//! and of each template that others invoke. Must never know: the effect of functions.

use std::collections::{BTreeMap, BTreeSet};

use gotmpl::{
    FuncMap,
    parse::{
        ActionNode, BranchNode, CommandNode, Expr, ListNode, Node, PipeNode, SmolStr, TemplateNode,
    },
};

/// The function that checks the limits, and a variable that keeps its result out of the text; no
/// template can name either.
pub(super) const CHECK: &str = "check limits";
const CHECKED: &str = "$ checked";
/// The variable that exists in every template.
const ROOT: &str = "$";
/// The functions of the template language itself.
const BUILT_IN: [&str; 13] =
    ["and", "or", "not", "len", "index", "call", "eq", "ne", "lt", "le", "gt", "ge", "break"];

/// The names that parse trees need.
#[derive(Debug, Default)]
pub(super) struct TreeReader {
    functions: BTreeSet<String>,
    templates: BTreeSet<String>,
    /// The variables in scope.
    variables: Vec<SmolStr>,
    unknown_variable: Option<String>,
}

impl TreeReader {
    /// Reads a tree that is executed with these variables and `$`.
    pub(super) fn read_tree(&mut self, tree: &mut ListNode, variables: &[&str]) {
        self.variables = variables.iter().chain([&ROOT]).map(|name| (*name).into()).collect();
        self.read_list(tree);
    }

    /// Reads a tree that is invoked by others or by itself.
    pub(super) fn read_invoked(&mut self, tree: &mut ListNode) {
        self.read_tree(tree, &[]);
        check_first(tree);
    }

    /// Describes a name that is needed but unknown, if there is one.
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
            .map(|name| format!("the function {name:?} is unknown"))
            .or_else(|| template.map(|name| format!("the template {name:?} is not defined")))
            .or_else(|| variable.map(|name| format!("the variable {name:?} is not defined")))
    }

    /// Reads a list of nodes; the parser limits the depth of the recursion.
    fn read_list(&mut self, list: &mut ListNode) {
        for node in &mut list.nodes {
            match node {
                Node::List(node) => self.read_list(node),
                Node::Action(node) => self.read_pipe(&node.pipe),
                Node::If(node) | Node::With(node) => self.read_branch(node),
                Node::Range(node) => {
                    self.read_branch(node);
                    check_first(&mut node.body);
                }
                Node::Template(node) => self.read_template(node),
                Node::Define(_) | Node::Text(_) | Node::Break(_) | Node::Continue(_) => {}
            }
        }
    }

    /// Reads a branch; its variables go out of scope at its end.
    fn read_branch(&mut self, branch: &mut BranchNode) {
        let before = self.variables.len();
        self.read_pipe(&branch.pipe);
        let variables_before = self.variables.len();
        self.read_list(&mut branch.body);
        self.variables.truncate(variables_before);
        branch.else_body.iter_mut().for_each(|list| self.read_list(list));
        self.variables.truncate(before);
    }

    fn read_template(&mut self, template: &TemplateNode) {
        self.templates.insert(template.name.to_string());
        template.pipe.iter().for_each(|pipe| self.read_pipe(pipe));
    }

    fn read_pipe(&mut self, pipe: &PipeNode) {
        pipe.commands
            .iter()
            .flat_map(|command| &command.args)
            .for_each(|arg| self.read_expression(arg));
        if pipe.is_assign {
            pipe.decl.iter().for_each(|name| self.read_variable(name));
        } else {
            self.variables.extend(pipe.decl.iter().cloned());
        }
    }

    fn read_variable(&mut self, name: &SmolStr) {
        if !self.variables.contains(name) {
            self.unknown_variable.get_or_insert_with(|| name.to_string());
        }
    }

    fn read_expression(&mut self, expression: &Expr) {
        match expression {
            Expr::Identifier(_, name) => drop(self.functions.insert(name.to_string())),
            Expr::Variable(_, name, _) => self.read_variable(name),
            Expr::Chain(_, inner, _) => self.read_expression(inner),
            Expr::Pipe(_, pipe) => self.read_pipe(pipe),
            Expr::Dot(_)
            | Expr::Field(..)
            | Expr::String(..)
            | Expr::Number(..)
            | Expr::Bool(..)
            | Expr::Nil(_) => {}
        }
    }
}

/// Inserts a check of the limits at the beginning of a list.
fn check_first(list: &mut ListNode) {
    let pos = list.pos;
    let commands = vec![CommandNode { pos, args: vec![Expr::Identifier(pos, CHECK.into())] }];
    let pipe = PipeNode { pos, decl: vec![CHECKED.into()], commands, is_assign: false };
    list.nodes.insert(0, Node::Action(ActionNode { pos, pipe }));
}
