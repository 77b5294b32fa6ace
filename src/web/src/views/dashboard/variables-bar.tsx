/** The choices above a dashboard: values of tags, in the address. */
import { useSignal } from "@preact/signals";
import { address, navigate } from "../../app/address";
import { valuesOfTag } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Variable } from "../../api/types";
import { Popover } from "../../parts/popover";
import { EXPANDED_MAX, keyOf, type ChosenValues } from "../../queries/variables";

interface Props {
  variables: readonly Variable[];
  chosen: ChosenValues;
}

export function VariablesBar({ variables, chosen }: Props) {
  if (variables.length === 0) return null;
  return (
    <div class="variables" role="group" aria-label="Variables">
      {variables.map((variable) => (
        <Choice key={variable.name} variable={variable} values={chosen[variable.name] ?? []} />
      ))}
    </div>
  );
}

function Choice({ variable, values }: { variable: Variable; values: readonly string[] }) {
  const text =
    values.length === 0 ? "All" : values.length > 2 ? `${values.length} chosen` : values.join(", ");
  return (
    <Popover label={variable.name} text={text}>
      <Values variable={variable} values={values} />
    </Popover>
  );
}

/** The maximum number of values listed without a search. */
const LISTED_MAX = 100;

function Values({ variable, values }: { variable: Variable; values: readonly string[] }) {
  const { name, tag, metric, multi } = variable;
  const search = useSignal("");
  const known = useResource(`${tag}\n${metric ?? ""}`, (signal) =>
    valuesOfTag(tag, metric, signal),
  ).value;
  const all = [...new Set([...values, ...(known.data ?? [])])];
  const words = search.value.toLowerCase();
  const matching = all.filter((value) => value.toLowerCase().includes(words));
  const choose = (value: string) => {
    if (!multi) choices(name, [value]);
    else if (values.includes(value))
      choices(
        name,
        values.filter((other) => other !== value),
      );
    else choices(name, [...values, value].slice(-EXPANDED_MAX));
  };
  const kind = multi ? "checkbox" : "radio";
  return (
    <>
      {all.length > 8 ? (
        <input
          type="search"
          aria-label={`Search values of ${name}`}
          placeholder={`Search ${all.length.toLocaleString()} values`}
          value={search.value}
          onInput={(event) => (search.value = event.currentTarget.value)}
        />
      ) : null}
      <label class="checked">
        <input type={kind} checked={values.length === 0} onChange={() => choices(name, [])} />
        <span>All</span>
      </label>
      {matching.slice(0, LISTED_MAX).map((value) => (
        <label key={value} class="checked">
          <input type={kind} checked={values.includes(value)} onChange={() => choose(value)} />
          <span>{value}</span>
        </label>
      ))}
      {matching.length > LISTED_MAX ? (
        <p class="muted">{matching.length - LISTED_MAX} more: search</p>
      ) : null}
      {known.error ? <p class="problem">{known.error.message}</p> : null}
      {known.loading && !known.data ? <p class="muted">Loading values…</p> : null}
    </>
  );
}

/** Writes a variable's values to the address. */
function choices(variable: string, values: readonly string[]) {
  const { path, params } = address.peek();
  const next = new URLSearchParams(params);
  next.delete(keyOf(variable));
  for (const value of values) next.append(keyOf(variable), value);
  const search = next.toString();
  navigate(search ? `${path}?${search}` : path);
}
