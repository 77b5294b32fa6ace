/** A loaded dashboard: its panels, and the reader's edits. */
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ApiError, api } from "../../api/client";
import type { Dashboard, DashboardAnswer, Panel } from "../../api/types";
import { address, navigate, param, setParams } from "../../app/address";
import { unsavedWork, useUnsavedWarning } from "../../app/guard";
import { useSteady } from "../../app/steady";
import { TimeControls } from "../../chart/controls";
import { useTimeFrame } from "../../chart/frame";
import { saveFile } from "../../chart/save";
import { escapeReordering } from "../../model/harmless";
import { isSame } from "../../model/same";
import { ErrorLine } from "../../parts/dialog";
import { Empty } from "../../parts/states";
import { chosenOf } from "../../queries/variables";
import { BoardHead } from "./board-head";
import { BoardDialog, type Dialogs } from "./board-dialogs";
import {
  chartPanel,
  PANELS_MAX,
  rowPanel,
  textPanel,
  withReplacedPanel,
  withCopy,
  withoutPanel,
  withPanel,
} from "./draft";
import type { PanelAction } from "./grid-view";
import { Panels } from "./panels";
import { VariablesBar } from "./variables-bar";

const edit = param("edit");
const UNDO_MAX = 50;

interface Props {
  loaded: DashboardAnswer;
  onReload: () => void;
}

export function Board({ loaded, onReload }: Props) {
  const { name, builtin, file } = loaded;
  const isFixed = builtin || file !== undefined;
  const draft = useSignal<Dashboard>(loaded.dashboard);
  const version = useSignal(loaded.version);
  const saved = useSignal<Dashboard>(loaded.dashboard);
  const undoSteps = useSignal<Dashboard[]>([]);
  const openDialog = useSignal<Dialogs | undefined>(undefined);
  const errorText = useSignal<string | undefined>(undefined);
  const busy = useSignal(false);
  const { range, resolution } = loaded.dashboard;
  const frame = useTimeFrame({ range, resolution }, name);
  const isEditing = edit.value === "1";
  const isChanged = useComputed(() => !isSame(draft.value, saved.value));
  useEffect(() => {
    document.title = escapeReordering(`${saved.value.title || name} · Granary`);
  }, [saved.value.title]);
  useUnsavedWarning(isChanged.value ? "Changes to this dashboard are not saved." : undefined);
  const chosen = useSteady(chosenOf(address.value.params, draft.value.variables));

  const isTyping = useRef(false);
  const changeDraft = (next: Dashboard) => {
    undoSteps.value = [...undoSteps.value, draft.value].slice(-UNDO_MAX);
    draft.value = next;
    isTyping.current = false;
  };
  /** Consecutive edits of a title are undone together. */
  const retitle = (title: string) => {
    if (isTyping.current) draft.value = { ...draft.value, title };
    else changeDraft({ ...draft.value, title });
    isTyping.current = true;
  };
  const undo = () => {
    draft.value = undoSteps.value.at(-1) ?? draft.value;
    undoSteps.value = undoSteps.value.slice(0, -1);
    isTyping.current = false;
  };
  const saveTo = async (to: string, next: Dashboard, at: number | null) => {
    const answer = await api.saveDashboard(to, at, next);
    saved.value = draft.value = next;
    undoSteps.value = [];
    isTyping.current = false;
    errorText.value = openDialog.value = undefined;
    version.value = answer.version;
  };
  const save = async () => {
    if (isFixed || version.value === null) {
      openDialog.value = { dialog: "save-as" };
      return;
    }
    busy.value = true;
    try {
      await saveTo(name, draft.value, version.value);
      setParams({ edit: undefined }, { replace: true });
    } catch (cause) {
      if (cause instanceof ApiError && cause.code === "conflict") {
        openDialog.value = { dialog: "conflict", found: conflictingVersion(cause) };
      } else {
        errorText.value = cause instanceof Error ? cause.message : String(cause);
      }
    }
    busy.value = false;
  };
  const stopEditing = () => {
    draft.value = saved.value;
    undoSteps.value = [];
    errorText.value = undefined;
    setParams({ edit: undefined }, { replace: true });
  };
  const applyAction = (action: PanelAction, panel: Panel) => {
    if (action === "edit") openDialog.value = { dialog: "panel", panel, isNew: false };
    else if (action === "copy") changeDraft(withCopy(draft.value, panel.id));
    else changeDraft(withoutPanel(draft.value, panel.id));
  };

  return (
    <>
      <BoardHead
        dashboard={draft.value}
        fixedBy={builtin ? "Built-in" : file}
        isEditing={isEditing}
        isChanged={isChanged.value}
        canUndo={undoSteps.value.length > 0}
        canAdd={draft.value.panels.length < PANELS_MAX}
        busy={busy.value}
        frame={frame}
        onTitle={retitle}
        onEdit={() => setParams({ edit: "1" }, { replace: true })}
        onStopEditing={stopEditing}
        onSave={() => void save()}
        onUndo={undo}
        onAdd={(kind) => {
          const panel = { chart: chartPanel("", []), text: textPanel(), row: rowPanel() }[kind];
          openDialog.value = { dialog: "panel", panel, isNew: true };
        }}
        onOpen={(dialog) => (openDialog.value = { dialog })}
        onKeepTimeFrame={() => {
          const choice = frame.choice.peek();
          changeDraft({ ...draft.value, range: choice.range, resolution: choice.resolution });
        }}
        onExport={() => exportDashboard(name, draft.value)}
      />
      <div class="board-problem">
        <ErrorLine message={errorText.value} />
      </div>
      <VariablesBar variables={draft.value.variables} chosen={chosen} />
      <TimeControls frame={frame} />
      {draft.value.panels.length === 0 ? (
        <NoPanels isEditing={isEditing} />
      ) : (
        <Panels
          dashboard={draft.value}
          isEditing={isEditing}
          frame={frame}
          chosen={chosen}
          onPanelsMoved={(panels) => changeDraft({ ...draft.value, panels })}
          onAction={applyAction}
        />
      )}
      <BoardDialog
        open={openDialog.value}
        name={name}
        dashboard={draft.value}
        savedTitle={saved.value.title}
        frame={frame}
        chosen={chosen}
        onClose={() => (openDialog.value = undefined)}
        onPanel={(panel, isNew) => {
          changeDraft(
            isNew ? withPanel(draft.value, panel) : withReplacedPanel(draft.value, panel),
          );
          openDialog.value = undefined;
        }}
        onVariables={(variables) => {
          changeDraft({ ...draft.value, variables });
          openDialog.value = undefined;
        }}
        onFolder={(folder) => {
          const { folder: _, ...rest } = draft.value;
          changeDraft(folder ? { ...rest, folder } : rest);
          openDialog.value = undefined;
        }}
        onSaveAs={async (to, title) => {
          await saveTo(to, { ...draft.value, title }, null);
          unsavedWork.value = undefined;
          navigate(`/dashboards/${to}`);
        }}
        onOverwrite={async (at) => {
          await saveTo(name, draft.value, at);
          setParams({ edit: undefined }, { replace: true });
        }}
        onOpen={(dialog) => (openDialog.value = { dialog })}
        onUseStored={() => {
          unsavedWork.value = undefined;
          setParams({ edit: undefined }, { replace: true });
          onReload();
        }}
      />
    </>
  );
}

/** The version that a conflict found. */
function conflictingVersion(cause: ApiError): number | null {
  const { body } = cause;
  const found = typeof body === "object" && body && "version" in body ? body.version : null;
  return typeof found === "number" ? found : null;
}

function exportDashboard(name: string, dashboard: Dashboard) {
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
