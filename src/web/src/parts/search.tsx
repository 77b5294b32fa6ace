/** A field whose text stands in the address, and narrows what is listed. */
import { setParams } from "../app/address";
import { Icon } from "./icon";

interface Props {
  label: string;
  placeholder: string;
  /** The parameter of the address, and what it is now. */
  param: string;
  text: string;
  class?: string;
}

export function Search({ label, placeholder, param, text, class: own = "" }: Props) {
  return (
    <span class={`search ${own}`}>
      <Icon name="search" />
      <input
        type="search"
        aria-label={label}
        placeholder={placeholder}
        value={text}
        onInput={(event) => setParams({ [param]: event.currentTarget.value }, { replace: true })}
      />
    </span>
  );
}
