/** The panels of a dashboard: rows that fold, repetitions for values, charts, values and texts. */
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { valuesOfTag } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Dashboard, Panel, RowPanel } from "../../api/types";
import { useSteady } from "../../app/steady";
import type { TimeFrame } from "../../chart/frame";
import { Icon } from "../../parts/icon";
import { expandTitle, type ChosenValues } from "../../queries/variables";
import { GridView, panelLabel, type PanelAction } from "./grid-view";
import { PanelChart } from "./panel-chart";
import { PanelLink } from "./panel-link";
import { shownPanels } from "./rows";
import { Text } from "./text";
import { isChart, ValuesPanel } from "./values/values-panel";

interface Props {
  dashboard: Dashboard;
  isEditing: boolean;
  frame: TimeFrame;
  chosen: ChosenValues;
  onPanelsMoved: (panels: Panel[]) => void;
  onAction: (action: PanelAction, panel: Panel) => void;
}

export function Panels({ dashboard, isEditing, frame, chosen, ...actions }: Props) {
  /** The rows that the reader folded (true) or unfolded, by their identifier. */
  const folds = useSignal<Readonly<Record<string, boolean>>>({});
  const isFolded = (row: RowPanel) => folds.value[row.id] ?? row.folded ?? false;
  const repeatValues = useRepeatValues(dashboard, chosen);
  const { panels } = dashboard;
  const shown = useMemo(
    () => (isEditing ? [] : shownPanels(panels, (name) => repeatValues[name] ?? [], isFolded)),
    [panels, isEditing, repeatValues, folds.value],
  );
  const valuesById = new Map(shown.map(({ panel: { id }, values }) => [id, values]));
  return (
    <GridView
      panels={isEditing ? panels : shown.map(({ panel }) => panel)}
      isEditing={isEditing}
      {...actions}
      render={(panel) =>
        panel.kind === "row" ? (
          <RowHead
            title={expandTitle(panel.title, { ...chosen, ...valuesById.get(panel.id) })}
            isFolded={!isEditing && isFolded(panel)}
            onFold={(next) => (folds.value = { ...folds.value, [panel.id]: next })}
          />
        ) : (
          <PanelView panel={panel} frame={frame} chosen={chosen} own={valuesById.get(panel.id)} />
        )
      }
    />
  );
}

/** The values for which panels are repeated: the chosen ones, or else all. */
function useRepeatValues(dashboard: Dashboard, chosen: ChosenValues) {
  const names = new Set(dashboard.panels.flatMap(({ repeat }) => (repeat ? [repeat] : [])));
  const repeated = dashboard.variables.filter(({ name }) => names.has(name));
  const open = repeated.filter(({ name }) => (chosen[name] ?? []).length === 0);
  const { data } = useResource(
    JSON.stringify(open),
    async (signal) => {
      const values = open.map(async ({ name, tag, metric }) => {
        return [name, await valuesOfTag(tag, metric, signal)] as const;
      });
      return Object.fromEntries(await Promise.all(values));
    },
    { isKeptBetween: true },
  ).value;
  return useSteady({
    ...data,
    ...Object.fromEntries(
      repeated
        .map(({ name }) => [name, chosen[name] ?? []] as const)
        .filter(([, values]) => values.length > 0),
    ),
  }) as Record<string, readonly string[]>;
}

interface RowProps {
  title: string;
  isFolded: boolean;
  onFold: (isFolded: boolean) => void;
}

function RowHead({ title, isFolded, onFold }: RowProps) {
  return (
    <h3 class="row-head">
      <button
        type="button"
        class="button quiet"
        aria-expanded={!isFolded}
        onClick={() => onFold(!isFolded)}
      >
        <Icon name={isFolded ? "right" : "down"} /> {title || "Row"}
      </button>
    </h3>
  );
}

interface PanelProps {
  panel: Exclude<Panel, RowPanel>;
  frame: TimeFrame;
  chosen: ChosenValues;
  /** The values of the panel's repetition. */
  own: ChosenValues | undefined;
}

function PanelView({ panel, frame, chosen: shared, own }: PanelProps) {
  const chosen = useSteady({ ...shared, ...own });
  const title = expandTitle(panel.title, chosen);
  const link = (
    <PanelLink name={panel.link} title={title || panelLabel(panel)} frame={frame} chosen={chosen} />
  );
  if (panel.kind !== "text") {
    const parts = { panel, frame, chosen, actions: link };
    if (!isChart(panel.kind)) return <ValuesPanel {...parts} />;
    return <PanelChart id={panel.id} title={title || "Chart"} {...parts} />;
  }
  return (
    <div class="text-panel" tabIndex={0} role="group" aria-label={panelLabel(panel)}>
      {panel.link ? <div class="text-link">{link}</div> : null}
      {title ? <h2>{title}</h2> : null}
      <Text text={panel.text} />
    </div>
  );
}
