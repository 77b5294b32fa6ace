/** A button that copies a text, and reports that it did. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { copyText } from "./clipboard";
import { Icon } from "./icon";

interface Props {
  text: string;
  class?: string;
  /** Called with whether the browser copied the text. */
  onCopy?: (isCopied: boolean) => void;
}

export function CopyButton({ text, class: extra = "", onCopy }: Props) {
  const isCopied = useSignal(false);
  useEffect(() => {
    isCopied.value = false;
  }, [text]);
  const copy = async () => {
    isCopied.value = await copyText(text);
    onCopy?.(isCopied.value);
  };
  return (
    <>
      <button
        type="button"
        class={`button ${extra}`}
        disabled={text === ""}
        onClick={() => void copy()}
      >
        <Icon name={isCopied.value ? "check" : "copy"} />
        {isCopied.value ? "Copied" : "Copy"}
      </button>
      <span class="hidden-text" role="status">
        {isCopied.value ? "Copied" : ""}
      </span>
    </>
  );
}
