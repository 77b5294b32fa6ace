import { CompletionContext } from "@codemirror/autocomplete";
import { EditorState } from "@codemirror/state";
import {
  LanguageType,
  newCompleteStrategy,
  promQLLanguage,
} from "@prometheus-io/codemirror-promql";
import { expect, it } from "vitest";
import { withDaemonWords } from "./completions";
import vocabulary from "./vocabulary.json";

/** The words offered at the end of a text, without names from the daemon. */
async function offeredWords(text: string): Promise<string[]> {
  const strategy = newCompleteStrategy();
  const source = withDaemonWords(strategy.promQL.bind(strategy));
  const state = EditorState.create({ doc: text, extensions: promQLLanguage(LanguageType.PromQL) });
  const result = await source(new CompletionContext(state, text.length, true));
  return (result?.options ?? [])
    .map(({ label }) => label)
    .filter((word) => /^[^\s()]+$/.test(word));
}

it("offers exactly the functions and aggregations of the daemon's parser", async () => {
  const numbers = ["inf", "nan"];
  const expected = [...vocabulary.functions, ...vocabulary.aggregations, ...numbers];
  expect((await offeredWords("")).sort()).toEqual(expected.sort());
});

it("offers exactly the operators and keywords of the daemon's parser", async () => {
  const answers = await Promise.all(
    ["metric ", "metric o", "metric > b", "metric + o", "sum b", "sum(metric) b"].map(offeredWords),
  );
  const wordsAtStart = new Set(await offeredWords(""));
  const operatorWords = new Set(answers.flat().filter((word) => !wordsAtStart.has(word)));
  expect([...operatorWords].sort()).toEqual(
    [...vocabulary.operators, ...vocabulary.keywords].sort(),
  );
});
