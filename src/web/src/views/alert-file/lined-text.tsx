/** A field for a long text: line numbers, lines that do not wrap, new lines that keep the indent. */
import type { ReadonlySignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { indentAfter } from "./indent";

/** A line to show; a new object shows the line again. */
export interface Jump {
  /** From 1. */
  line: number;
}

interface Props {
  /** The box, for the focus. */
  field: RefObject<HTMLTextAreaElement | null>;
  label: string;
  /** The ID of what describes the text: its faults. */
  describedBy: string;
  text: string;
  /** The lines with faults, from 1. */
  faulty: ReadonlySet<number>;
  jump: ReadonlySignal<Jump | undefined>;
  onText: (text: string) => void;
}

/** The number of lines that are shown above a line. */
const LINES_ABOVE = 4;

export function LinedText({ field, label, describedBy, text, faulty, jump, onText }: Props) {
  const numbers = useRef<HTMLPreElement>(null);
  const follow = () => {
    if (field.current && numbers.current) numbers.current.scrollTop = field.current.scrollTop;
  };
  const target = jump.value;
  useLayoutEffect(() => {
    if (field.current && target) showLine(field.current, target.line);
  }, [target]);
  useLayoutEffect(follow, [text]);
  const lineCount = text.split("\n").length;
  // Typing within a line draws no number again.
  const drawnNumbers = useMemo(
    () =>
      Array.from({ length: lineCount }, (_, k) => (
        <div key={k} class={faulty.has(k + 1) ? "faulty" : undefined}>
          {k + 1}
        </div>
      )),
    [lineCount, [...faulty].join()],
  );
  return (
    <div class="lined">
      <pre class="lined-numbers" ref={numbers} aria-hidden="true">
        {drawnNumbers}
      </pre>
      <textarea
        ref={field}
        class="lined-text"
        aria-label={label}
        aria-describedby={describedBy}
        aria-invalid={faulty.size > 0}
        wrap="off"
        rows={1}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        value={text}
        onScroll={follow}
        onKeyDown={keepIndent}
        onInput={(event) => onText(event.currentTarget.value)}
      />
    </div>
  );
}

/** Selects a line, and scrolls to it. */
function showLine(field: HTMLTextAreaElement, line: number): void {
  const lines = field.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, before) => sum + before.length + 1, 0);
  field.focus({ preventScroll: true });
  field.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  const lineHeight = parseFloat(getComputedStyle(field).lineHeight);
  field.scrollTop = Math.max(0, line - 1 - LINES_ABOVE) * lineHeight;
  field.scrollLeft = 0;
  field.scrollIntoView({ block: "nearest" });
}

function keepIndent(event: KeyboardEvent & { currentTarget: HTMLTextAreaElement }): void {
  const hasModifier = event.ctrlKey || event.metaKey || event.altKey || event.shiftKey;
  if (event.key !== "Enter" || hasModifier || event.isComposing) return;
  const { value, selectionStart } = event.currentTarget;
  const indent = indentAfter(value, selectionStart);
  if (indent === "") return;
  event.preventDefault();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only way that undo knows
  document.execCommand("insertText", false, `\n${indent}`);
}
