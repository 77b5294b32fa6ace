/** A field for a password or a code. */
import { useId, useLayoutEffect, useRef } from "preact/hooks";

interface Props {
  label: string;
  value: string;
  onText: (text: string) => void;
  /** The text that password managers fill in. */
  autocomplete: "current-password" | "new-password" | "one-time-code" | "off";
  /** True if the field receives the focus when it appears. */
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
  const shared = {
    ref: input,
    autocomplete,
    placeholder,
    value,
    "aria-describedby": hint ? hintId : undefined,
    onInput: ({ currentTarget }: { currentTarget: HTMLInputElement }) =>
      onText(currentTarget.value),
  };
  return (
    <label class="labelled">
      {label}
      {autocomplete === "one-time-code" ? (
        <input {...shared} type="text" inputMode="numeric" class="mono" />
      ) : (
        <input {...shared} type="password" />
      )}
      {hint ? <small id={hintId}>{hint}</small> : null}
    </label>
  );
}
