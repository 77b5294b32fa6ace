/** The editor of a panel: its queries with their display, or its text with a preview. */
import { useSignal } from "@preact/signals";
import { useCallback } from "preact/hooks";
import type { ChartPanel, Panel, TextPanel, Variable } from "../../api/types";
import type { Failure } from "../../chart/data";
import type { TimeFrame } from "../../chart/frame";
import { Dialog, DialogFoot, TextField } from "../../parts/dialog";
import { Empty } from "../../parts/states";
import { letterOf, isComplete } from "../../queries/address";
import { Facets } from "../../queries/facets";
import { NumberChoice } from "../../queries/number-choice";
import { NO_METRIC, QueryRows } from "../../queries/query-rows";
import { expandQueries, type ChosenValues } from "../../queries/variables";
import { PanelChart } from "./panel-chart";
import { LinkChoice } from "./panel-link";
import { PanelOptions } from "./panel-options";
import { Text } from "./text";
import { isChart, ValuesPanel } from "./values/values-panel";

interface Props<P extends Panel> {
  panel: P;
  isNew: boolean;
  onClose: () => void;
  onDone: (panel: P) => void;
}

interface ChartProps extends Props<ChartPanel> {
  frame: TimeFrame;
  variables: readonly Variable[];
  chosen: ChosenValues;
}

const TITLE_MAX = 200;

export function ChartEditor(props: ChartProps) {
  const { panel, isNew, onClose, onDone, frame, variables, chosen } = props;
  const draft = useSignal<ChartPanel>(
    panel.queries.length > 0 ? panel : { ...panel, queries: [NO_METRIC] },
  );
  const active = useSignal(0);
  const failures = useSignal<Failure[]>([]);
  const onFailures = useCallback((next: Failure[]) => (failures.value = next), []);
  const change = (part: Partial<ChartPanel>) => (draft.value = { ...draft.value, ...part });
  const { queries, display } = draft.value;
  const complete = queries.filter(isComplete);
  const at = Math.min(active.value, queries.length - 1);
  const query = queries[at];
  const done = () => {
    const title = draft.value.title.trim() || titleOf(draft.value);
    onDone({ ...draft.value, title, queries: complete });
  };
  return (
    <Dialog title={isNew ? "New chart" : "Edit chart"} wide onClose={onClose}>
      <div class="panel-fields">
        <TextField
          label="Title"
          isFirst
          maxLength={TITLE_MAX}
          placeholder={titleOf(draft.value)}
          value={draft.value.title}
          onText={(title) => change({ title })}
        />
        <PanelOptions
          panel={draft.value}
          variables={variables}
          onChange={(next) => (draft.value = next)}
        />
      </div>
      <section class="card" aria-label="Queries">
        <QueryRows
          queries={queries}
          onChange={(next) => change({ queries: next })}
          active={at}
          onActive={(next) => (active.value = next)}
          errors={errorsOf(draft.value, failures.value, chosen)}
        >
          <NumberChoice
            value={display}
            onChange={(next) => {
              const { display: _, ...rest } = draft.value;
              draft.value = next ? { ...rest, display: next } : rest;
            }}
          />
        </QueryRows>
      </section>
      <div class={query?.kind === "metric" && query.metric ? "explore with-tags" : "explore"}>
        {query?.kind === "metric" && query.metric ? (
          <Facets
            query={query}
            letter={letterOf(at)}
            variables={variables}
            onChange={(next) => change({ queries: queries.with(at, next) })}
          />
        ) : null}
        <div class="explore-shown panel-preview">
          {complete.length === 0 ? (
            <section class="card">
              <Empty title="No queries yet">
                <p>Search for a metric by name, or enter PromQL.</p>
              </Empty>
            </section>
          ) : (
            <Preview
              panel={{ ...draft.value, queries: complete }}
              frame={frame}
              chosen={chosen}
              onFailures={onFailures}
            />
          )}
        </div>
      </div>
      <DialogFoot
        action={isNew ? "Add" : "Apply"}
        isReady={complete.length > 0}
        onClose={onClose}
        onDone={done}
      />
    </Dialog>
  );
}

interface PreviewProps {
  panel: ChartPanel;
  frame: TimeFrame;
  chosen: ChosenValues;
  onFailures: (failures: Failure[]) => void;
}

function Preview({ panel, frame, chosen, onFailures }: PreviewProps) {
  if (!isChart(panel.kind)) {
    return (
      <section class="card">
        <ValuesPanel panel={{ ...panel, title: "Preview" }} frame={frame} chosen={chosen} />
      </section>
    );
  }
  return (
    <PanelChart
      id="preview"
      title="Preview"
      panel={panel}
      frame={frame}
      chosen={chosen}
      onFailures={onFailures}
    />
  );
}

/** Errors by row; an error of a query that variables expanded belongs to its row. */
function errorsOf({ queries }: ChartPanel, failures: readonly Failure[], chosen: ChosenValues) {
  const rows = queries.flatMap((query, row) =>
    isComplete(query) ? expandQueries([query], chosen).map(() => row) : [],
  );
  return Object.fromEntries(failures.map(({ index: at, message }) => [rows[at] ?? 0, message]));
}

function titleOf({ queries }: ChartPanel): string {
  const names = queries.map((query) => (query.kind === "metric" ? query.metric : query.expression));
  return names.find((name) => name.trim() !== "")?.slice(0, TITLE_MAX) ?? "Chart";
}

export function TextEditor({ panel, isNew, onClose, onDone }: Props<TextPanel>) {
  const draft = useSignal(panel);
  const change = (part: Partial<TextPanel>) => (draft.value = { ...draft.value, ...part });
  return (
    <Dialog title={isNew ? "New text" : "Edit text"} wide onClose={onClose}>
      <TextField
        label="Title"
        isFirst
        maxLength={TITLE_MAX}
        value={draft.value.title}
        onText={(title) => change({ title })}
      />
      <LinkChoice
        link={draft.value.link}
        onLink={(link) => {
          const { link: _, ...rest } = draft.value;
          draft.value = link ? { ...rest, link } : rest;
        }}
      />
      <div class="text-editor">
        <label class="labelled">
          Text
          <textarea
            class="mono"
            rows={12}
            maxLength={20_000}
            placeholder={"# Heading\n**bold**, *emphasis*, `code`\n- item\n[link](https://…)"}
            value={draft.value.text}
            onInput={(event) => change({ text: event.currentTarget.value })}
          />
        </label>
        <div class="labelled">
          Preview
          <div class="card text-preview">
            <Text text={draft.value.text} />
          </div>
        </div>
      </div>
      <DialogFoot
        action={isNew ? "Add" : "Apply"}
        isReady
        onClose={onClose}
        onDone={() => onDone(draft.value)}
      />
    </Dialog>
  );
}
