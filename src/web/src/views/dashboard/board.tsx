/** A loaded dashboard: its panels, and the reader's edits. */
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { ApiError, api } from "../../api/client";
import type { ChartPanel, Dashboard, DashboardAnswer, Panel } from "../../api/types";
import { address, go, param, setParams } from "../../app/address";
import { unsaved, useUnsaved } from "../../app/guard";
import { useSteady } from "../../app/steady";
import { Chart } from "../../chart/chart";
import { TimeControls } from "../../chart/controls";
import { useTimeFrame, type TimeFrame } from "../../chart/frame";
import { saveFile } from "../../chart/save";
import { isSame } from "../../model/same";
import { Problem } from "../../parts/dialog";
import { Empty } from "../../parts/states";
import { expandQueries, chosenOf, expandTitle, type ChosenValues } from "../../queries/variables";
import { BoardHead } from "./board-head";
import { BoardDialog, type Dialogs } from "./board-dialogs";
import {
  chartPanel,
  PANELS_MAX,
  textPanel,
  withChanged,
  withCopy,
  withoutPanel,
  withPanel,
} from "./draft";
import { GridView, nameOf, type PanelAction } from "./grid-view";
import { Text } from "./text";
import { VariablesBar } from "./variables-bar";

const edit = param("edit");
const UNDO_MAX = 50;

interface Props {
  loaded: DashboardAnswer;
  onReload: () => void;
}

export function Board({ loaded, onReload }: Props) {
  const { name, builtin } = loaded;
  const draft = useSignal<Dashboard>(loaded.dashboard);
  const version = useSignal(loaded.version);
  const saved = useSignal<Dashboard>(loaded.dashboard);
  const past = useSignal<Dashboard[]>([]);
  const open = useSignal<Dialogs | undefined>(undefined);
  const problem = useSignal<string | undefined>(undefined);
  const busy = useSignal(false);
  const { range, resolution } = loaded.dashboard;
  const frame = useTimeFrame({ range, resolution }, name);
  const isEditing = edit.value === "1";
  const isChanged = useComputed(() => !isSame(draft.value, saved.value));
  useEffect(() => {
    document.title = `${saved.value.title || name} · Granary`;
  }, [saved.value.title]);
  useUnsaved(isChanged.value ? "Changes to this dashboard are not saved." : undefined);
  const chosen = useSteady(chosenOf(address.value.params, draft.value.variables));

  const isTyping = useRef(false);
  const change = (next: Dashboard) => {
    past.value = [...past.value, draft.value].slice(-UNDO_MAX);
    draft.value = next;
    isTyping.current = false;
  };
  /** Consecutive edits of a title are undone together. */
  const retitle = (title: string) => {
    if (isTyping.current) draft.value = { ...draft.value, title };
    else change({ ...draft.value, title });
    isTyping.current = true;
  };
  const undo = () => {
    draft.value = past.value.at(-1) ?? draft.value;
    past.value = past.value.slice(0, -1);
    isTyping.current = false;
  };
  const store = async (to: string, next: Dashboard, at: number | null) => {
    const answer = await api.saveDashboard(to, at, next);
    saved.value = draft.value = next;
    past.value = [];
    isTyping.current = false;
    problem.value = open.value = undefined;
    version.value = answer.version;
  };
  const save = async () => {
    if (builtin || version.value === null) {
      open.value = { dialog: "save-as" };
      return;
    }
    busy.value = true;
    try {
      await store(name, draft.value, version.value);
      setParams({ edit: undefined }, { replace: true });
    } catch (cause) {
      if (cause instanceof ApiError && cause.word === "conflict") {
        open.value = { dialog: "conflict", found: foundOf(cause) };
      } else {
        problem.value = cause instanceof Error ? cause.message : String(cause);
      }
    }
    busy.value = false;
  };
  const stop = () => {
    draft.value = saved.value;
    past.value = [];
    problem.value = undefined;
    setParams({ edit: undefined }, { replace: true });
  };
  const act = (action: PanelAction, panel: Panel) => {
    if (action === "edit") open.value = { dialog: "panel", panel, isNew: false };
    else if (action === "copy") change(withCopy(draft.value, panel.id));
    else change(withoutPanel(draft.value, panel.id));
  };

  return (
    <>
      <BoardHead
        dashboard={draft.value}
        isBuiltin={builtin}
        isEditing={isEditing}
        isChanged={isChanged.value}
        canUndo={past.value.length > 0}
        canAdd={draft.value.panels.length < PANELS_MAX}
        busy={busy.value}
        frame={frame}
        onTitle={retitle}
        onEdit={() => setParams({ edit: "1" }, { replace: true })}
        onStop={stop}
        onSave={() => void save()}
        onUndo={undo}
        onAdd={(kind) => {
          const panel = kind === "chart" ? chartPanel("", []) : textPanel();
          open.value = { dialog: "panel", panel, isNew: true };
        }}
        onOpen={(dialog) => (open.value = { dialog })}
        onFrame={() => {
          const choice = frame.choice.peek();
          change({ ...draft.value, range: choice.range, resolution: choice.resolution });
        }}
        onExport={() => exportOf(name, draft.value)}
      />
      <div class="board-problem">
        <Problem message={problem.value} />
      </div>
      <VariablesBar variables={draft.value.variables} chosen={chosen} />
      <TimeControls frame={frame} />
      {draft.value.panels.length === 0 ? (
        <NoPanels isEditing={isEditing} />
      ) : (
        <GridView
          panels={draft.value.panels}
          isEditing={isEditing}
          onMoved={(panels) => change({ ...draft.value, panels })}
          onAction={act}
          render={(panel) => <PanelView panel={panel} frame={frame} chosen={chosen} />}
        />
      )}
      <BoardDialog
        open={open.value}
        name={name}
        dashboard={draft.value}
        savedTitle={saved.value.title}
        frame={frame}
        chosen={chosen}
        onClose={() => (open.value = undefined)}
        onPanel={(panel, isNew) => {
          change(isNew ? withPanel(draft.value, panel) : withChanged(draft.value, panel));
          open.value = undefined;
        }}
        onVariables={(variables) => {
          change({ ...draft.value, variables });
          open.value = undefined;
        }}
        onSaveAs={async (to, title) => {
          await store(to, { ...draft.value, title }, null);
          unsaved.value = undefined;
          go(`/dashboards/${to}`);
        }}
        onOverwrite={async (at) => {
          await store(name, draft.value, at);
          setParams({ edit: undefined }, { replace: true });
        }}
        onOpen={(dialog) => (open.value = { dialog })}
        onUseStored={() => {
          unsaved.value = undefined;
          setParams({ edit: undefined }, { replace: true });
          onReload();
        }}
      />
    </>
  );
}

/** The version that a conflict found. */
function foundOf(cause: ApiError): number | null {
  const { body } = cause;
  const found = typeof body === "object" && body && "version" in body ? body.version : null;
  return typeof found === "number" ? found : null;
}

function exportOf(name: string, dashboard: Dashboard) {
  const text = `${JSON.stringify(dashboard, null, 2)}\n`;
  saveFile(`${name}.json`, new Blob([text], { type: "application/json" }));
}

function NoPanels({ isEditing }: { isEditing: boolean }) {
  return (
    <section class="card">
      <Empty title="No panels yet">
        <p>
          {isEditing
            ? "Add a chart or a text."
            : "Edit the dashboard to add charts and texts, or save one from Explore."}
        </p>
      </Empty>
    </section>
  );
}

interface PanelProps {
  panel: Panel;
  frame: TimeFrame;
  chosen: ChosenValues;
}

function PanelView({ panel, frame, chosen }: PanelProps) {
  if (panel.kind === "chart") return <ChartView panel={panel} frame={frame} chosen={chosen} />;
  return (
    <div class="text-panel" tabIndex={0} role="group" aria-label={nameOf(panel)}>
      {panel.title ? <h2>{expandTitle(panel.title, chosen)}</h2> : null}
      <Text text={panel.text} />
    </div>
  );
}

function ChartView({ panel, frame, chosen }: PanelProps & { panel: ChartPanel }) {
  const queries = useMemo(() => expandQueries(panel.queries, chosen), [panel.queries, chosen]);
  return (
    <Chart
      id={panel.id}
      title={expandTitle(panel.title, chosen) || "Chart"}
      queries={queries}
      frame={frame}
      display={panel.display}
      stacked={panel.stacked}
      log={panel.log}
      unit={panel.unit}
      fill
    />
  );
}
