/** A PromQL expression to edit. The editor is loaded when the first expression is shown. */
import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import "../../styles/promql-editor.css";
import { Icon } from "../icon";
import type { Editor } from "./editor";
import { complaintOf } from "./complaint";

interface Props {
  label: string;
  value: string;
  /** The daemon's error. */
  error: string | undefined;
  /** Called after a pause, when the focus leaves, and by Ctrl or Cmd with Enter. */
  onRun: (expression: string) => void;
}

const RUN_DELAY_MS = 700;

export function PromqlEditor({ label, value, error, onRun }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | undefined>(undefined);
  const text = useRef(value);
  const shown = useSignal<"loading" | "editor" | "plain">("loading");
  const run = useRef(onRun);
  run.current = onRun;
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const id = useId();

  const runImmediately = () => {
    clearTimeout(timer.current);
    run.current(text.current);
  };
  const onTextChange = (next: string) => {
    text.current = next;
    clearTimeout(timer.current);
    timer.current = setTimeout(runImmediately, RUN_DELAY_MS);
  };

  useEffect(() => {
    let isUnmounted = false;
    import("./editor").then(
      ({ createEditor }) => {
        if (isUnmounted || !host.current) return;
        const parent = host.current;
        editor.current = createEditor({
          parent,
          label,
          text: text.current,
          onChange: onTextChange,
          onRun: runImmediately,
        });
        shown.value = "editor";
      },
      () => (shown.value = "plain"),
    );
    return () => {
      isUnmounted = true;
      clearTimeout(timer.current);
      editor.current?.destroy();
    };
  }, []);

  useEffect(() => {
    if (value === text.current) return;
    text.current = value;
    editor.current?.setText(value);
  }, [value]);

  const complaint = error === undefined ? undefined : complaintOf(error, value);
  useEffect(() => {
    if (shown.value === "editor") editor.current?.setComplaint(complaint);
  }, [error, value, shown.value]);

  return (
    <div class={complaint ? "promql wrong" : "promql"}>
      <div class="promql-box" ref={host} hidden={shown.value !== "editor"} />
      {shown.value === "editor" ? null : (
        <textarea
          class="promql-plain mono"
          rows={1}
          aria-label={label}
          aria-describedby={id}
          spellcheck={false}
          value={text.current}
          onInput={(event) => onTextChange(event.currentTarget.value)}
          onBlur={runImmediately}
        />
      )}
      <p class="promql-complaint" id={id} role="status">
        {complaint ? (
          <>
            <Icon name="warning" />
            <span>{complaint.message}</span>
          </>
        ) : null}
      </p>
    </div>
  );
}
