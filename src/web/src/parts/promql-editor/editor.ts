/**
 * The PromQL editor, in a shadow root: there, CodeMirror adds its styles as sheets, because the
 * page's policy allows no style elements.
 */
import {
  acceptCompletion,
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import {
  bracketMatching,
  HighlightStyle,
  syntaxHighlighting,
  syntaxTree,
} from "@codemirror/language";
import { EditorState, Prec, StateEffect, StateField, type Extension } from "@codemirror/state";
import { Decoration, EditorView, keymap, placeholder, type DecorationSet } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { LanguageType, promQLLanguage } from "@prometheus-io/codemirror-promql";
import { completions } from "./completions";
import type { Complaint } from "./complaint";

export interface EditorOptions {
  parent: HTMLElement;
  label: string;
  text: string;
  onChange: (text: string) => void;
  /** Called by Ctrl or Cmd with Enter, or when the focus leaves. */
  onRun: () => void;
}

export interface Editor {
  setText: (text: string) => void;
  setComplaint: (complaint: Complaint | undefined) => void;
  focus: () => void;
  destroy: () => void;
}

export function createEditor(options: EditorOptions): Editor {
  const root = options.parent.shadowRoot ?? options.parent.attachShadow({ mode: "open" });
  const container = document.createElement("div");
  root.replaceChildren(container);
  const view = new EditorView({
    root,
    parent: container,
    state: EditorState.create({ doc: options.text, extensions: extensions(options) }),
  });
  return {
    setText: (text) => {
      const current = view.state.doc.toString();
      if (text === current) return;
      view.dispatch({ changes: { from: 0, to: current.length, insert: text } });
    },
    setComplaint: (complaint) => view.dispatch({ effects: setComplaintEffect.of(complaint) }),
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}

function extensions({ label, onChange, onRun }: EditorOptions): Extension[] {
  const run = () => {
    onRun();
    return true;
  };
  return [
    Prec.highest(keymap.of([{ key: "Mod-Enter", run }])),
    history(),
    closeBrackets(),
    bracketMatching(),
    promQLLanguage(LanguageType.PromQL),
    autocompletion({ override: [completions()], icons: false, maxRenderedOptions: 100 }),
    keymap.of([
      ...closeBracketsKeymap,
      ...completionKeymap,
      { key: "Tab", run: acceptCompletion },
      ...historyKeymap,
      ...defaultKeymap,
    ]),
    syntaxHighlighting(highlightColours),
    complaintField,
    placeholder("rate(system_network_bytes_in[5m])"),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label }),
    replaceSelectionByTyping,
    EditorView.updateListener.of((update) => {
      if (update.docChanged) onChange(update.state.doc.toString());
      if (update.focusChanged && !update.view.hasFocus) onRun();
    }),
    editorTheme,
  ];
}

/**
 * Replaces the selection by the typed text. The browser itself would keep the style of the replaced
 * text in an attribute that the policy forbids.
 */
const replaceSelectionByTyping = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const isTyped = event.inputType === "insertText" && event.data !== null;
    if (!isTyped || view.composing || view.state.selection.main.empty) return false;
    const { from, to } = view.state.selection.main;
    const text = event.data;
    const options = { userEvent: "input.type", scrollIntoView: true };
    const insert = () => view.state.update(view.state.replaceSelection(text), options);
    const handlers = view.state.facet(EditorView.inputHandler);
    const isHandled = handlers.some((handle) => handle(view, from, to, text, insert));
    if (!isHandled) view.dispatch(insert());
    event.preventDefault();
    return true;
  },
});

const setComplaintEffect = StateEffect.define<Complaint | undefined>();
const complaintMark = Decoration.mark({ class: "cm-complaint" });

/** The daemon's error; typing removes it. */
const complaintField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (marks, transaction) => {
    if (transaction.docChanged) return Decoration.none;
    for (const effect of transaction.effects) {
      if (effect.is(setComplaintEffect))
        return complaintDecorations(transaction.state, effect.value);
    }
    return marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function complaintDecorations(state: EditorState, complaint: Complaint | undefined): DecorationSet {
  if (!complaint) return Decoration.none;
  const at = complaint.at ?? firstErrorNode(state);
  const to = Math.min(at?.to ?? 0, state.doc.length);
  return at && at.from < to ? Decoration.set([complaintMark.range(at.from, to)]) : Decoration.none;
}

/** The position where the grammar stops, for errors without a position. */
function firstErrorNode(state: EditorState): Complaint["at"] {
  let span: Complaint["at"];
  syntaxTree(state).iterate({
    enter: (node) => {
      if (span || !node.type.isError) return;
      span = { from: node.from === node.to ? Math.max(0, node.from - 1) : node.from, to: node.to };
    },
  });
  return span;
}

const highlightColours = HighlightStyle.define([
  { tag: [tags.keyword, tags.function(tags.variableName)], color: "var(--code-call)" },
  { tag: tags.labelName, color: "var(--code-label)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.modifier], color: "var(--accent)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: tags.invalid, color: "var(--bad)" },
]);

const editorTheme = EditorView.theme({
  "&": { color: "var(--text)", fontSize: "13.5px", backgroundColor: "transparent" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { padding: "6px 0", caretColor: "var(--text)", minHeight: "32px" },
  ".cm-line": { padding: "0 10px" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-placeholder": { color: "var(--muted)" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": {
    background: "var(--accent-soft)",
  },
  ".cm-content ::selection": { backgroundColor: "var(--accent-soft)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": {
    backgroundColor: "var(--raised)",
    outline: "1px solid var(--line)",
  },
  ".cm-complaint": {
    textDecoration: "underline wavy var(--bad)",
    textUnderlineOffset: "4px",
    textDecorationSkipInk: "none",
  },
  ".cm-tooltip": {
    zIndex: "30",
    border: "1px solid var(--line)",
    borderRadius: "8px",
    backgroundColor: "var(--surface)",
    color: "var(--text)",
    boxShadow: "0 12px 40px rgb(0 0 0 / 25%)",
    overflow: "hidden",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": {
    fontFamily: "var(--mono)",
    maxHeight: "260px",
    minWidth: "220px",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "4px 10px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
    background: "var(--accent-soft)",
    color: "var(--text)",
  },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal", marginLeft: "10px" },
  ".cm-tooltip.cm-completionInfo": { padding: "8px 10px", maxWidth: "320px" },
});
