/** Fields for the tags that identify a series of a metric: one for each tag, and a text of all. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { setParams } from "../../app/address";
import { valuesOfTag } from "../../api/client";
import type { Facet } from "../../api/types";
import { Combobox } from "../../parts/combobox";
import { Icon } from "../../parts/icon";
import { selectionOf, tagsOf } from "../../queries/tags";

const VALUES_MAX = 100;

interface TagFieldsProps {
  metric: string;
  tags: string;
  facets: Facet[];
}

export function TagFields({ metric, tags, facets }: TagFieldsProps) {
  const chosen = selectionOf(tags);
  const text = useSignal(tags);
  useEffect(() => {
    text.value = tags;
  }, [tags]);
  const choose = (name: string, value: string) => {
    const next = new Map(chosen);
    if (value === "") next.delete(name);
    else next.set(name, value);
    setParams({ tags: tagsOf(next) }, { replace: true });
  };
  const open = facets.filter(({ name, values_total }) => values_total > 1 || chosen.has(name));
  return (
    <div class="document-search-tags">
      {open.map((facet) => (
        <TagField
          key={facet.name}
          facet={facet}
          metric={metric}
          chosen={chosen.get(facet.name)}
          onChoose={(value) => choose(facet.name, value)}
        />
      ))}
      <form
        class="field tag-text"
        onSubmit={(event) => {
          event.preventDefault();
          setParams({ tags: tagsOf(selectionOf(text.value)) }, { replace: true });
        }}
      >
        <input
          type="text"
          class="mono"
          aria-label="Tags as name=value, between commas"
          placeholder="host=web1,core=0"
          autocomplete="off"
          spellcheck={false}
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
        {text.value !== tags && (
          <button type="submit" class="button">
            <Icon name="check" />
            Apply
          </button>
        )}
      </form>
    </div>
  );
}

interface TagFieldProps {
  facet: Facet;
  metric: string;
  chosen: string | undefined;
  onChoose: (value: string) => void;
}

/** The field of a tag: a list of few values, or a search among many values. */
function TagField({ facet, metric, chosen, onChoose }: TagFieldProps) {
  const { name, values, values_total } = facet;
  const any = `any of ${values_total.toLocaleString("en")}`;
  if (values_total > values.length) {
    return (
      <div class="field tag-field tag-search">
        <span aria-hidden="true">{name}</span>
        <Combobox<string>
          label={name}
          value={chosen ?? ""}
          placeholder={any}
          noun={`values of ${name}`}
          find={(text, signal) => findValues(name, metric, text, signal)}
          keyOf={(value) => value}
          render={(value) => (value === "" ? any : value)}
          onChoose={onChoose}
        />
      </div>
    );
  }
  return (
    <label class="field tag-field">
      <span>{name}</span>
      <select value={chosen ?? ""} onChange={(event) => onChoose(event.currentTarget.value)}>
        <option value="">{any}</option>
        {optionsOf(facet, chosen).map((value) => (
          <option key={value} value={value}>
            {value}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Values of a tag that contain a text; the first values for an empty text. */
async function findValues(name: string, metric: string, text: string, signal: AbortSignal) {
  const all = await valuesOfTag(name, metric, signal);
  const words = text.toLowerCase();
  const found = all.filter((value) => value !== "" && value.toLowerCase().includes(words));
  const any = text === "" ? [""] : [];
  return { total: found.length, items: [...any, ...found.slice(0, VALUES_MAX)] };
}

/** The values to choose from, including the chosen value. */
function optionsOf(facet: Facet, chosen: string | undefined): string[] {
  const values = facet.values.map(({ value }) => value).filter((value) => value !== "");
  return chosen === undefined || values.includes(chosen) ? values : [chosen, ...values];
}
