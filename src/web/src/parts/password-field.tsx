/** A field for a password or a code. */
import { useId, useLayoutEffect, useRef } from "preact/hooks";

interface Props {
  label: string;
  value: string;
  onText: (text: string) => void;
  /** What password managers fill in. */
  autocomplete: "current-password" | "new-password" | "one-time-code" | "off";
  /** Whether it receives the focus when it appears. */
  isFirst?: boolean;
  hint?: string | undefined;
  placeholder?: string;
}

export function PasswordField(props: Props) {
  const { label, value, onText, autocomplete, isFirst, hint, placeholder } = props;
  const hintId = useId();
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (isFirst) input.current?.focus();
  }, []);
  const isCode = autocomplete === "one-time-code";
  return (
    <label class="labelled">
      {label}
      <input
        ref={input}
        type={isCode ? "text" : "password"}
        class={isCode || autocomplete === "off" ? "mono" : undefined}
        inputMode={isCode ? "numeric" : undefined}
        autocomplete={autocomplete}
        placeholder={placeholder}
        value={value}
        aria-describedby={hint ? hintId : undefined}
        onInput={(event) => onText(event.currentTarget.value)}
      />
      {hint ? <small id={hintId}>{hint}</small> : null}
    </label>
  );
}
