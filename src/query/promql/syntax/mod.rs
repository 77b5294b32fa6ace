//! PromQL's syntax: from the text of a query to a checked tree, and from the tree to text and JSON.
//!
//! The grammar is Prometheus' (`promql/parser/generated_parser.y`, `docs/querying/basics.md` and
//! `operators.md`) with all experimental features, and with `or` between the matchers of a
//! selector. Every node contains its span in the text. The parser limits length and depth, so code
//! that walks a tree may recurse. Must never know: the store, values of series, how a query is
//! evaluated.

mod check;
mod display;
pub(crate) mod duration_expr;
mod format;
mod functions;
mod json;
mod lexer;
mod literal;
pub(crate) mod operator;
mod parsed_query;
mod parser;
pub(crate) mod span;
mod token;
pub(crate) mod tree;
mod value_type;

pub(crate) use format::format_expression;
pub(crate) use json::json;
pub(crate) use literal::MILLIS_MAX;
pub(crate) use parsed_query::ParsedQuery;

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn the_vocabulary_of_the_page_equals_the_words_of_the_parser() {
        let page = include_str!("../../../web/src/parts/promql-editor/vocabulary.json");
        let words = json!({
            "functions": super::functions::names(),
            "aggregations": super::operator::aggregation_names(),
            "operators": super::operator::operator_texts(),
            "keywords": super::token::keyword_names(),
        });
        let page: serde_json::Value = serde_json::from_str(page).unwrap();
        assert_eq!(words, page, "the page's vocabulary.json is outdated");
    }
}
