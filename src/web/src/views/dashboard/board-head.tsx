/** The title of a dashboard, with its actions. */
import type { Dashboard } from "../../api/types";
import type { TimeFrame } from "../../chart/frame";
import { Menu } from "../../chart/menu";
import { AnnotateButton } from "../../parts/annotate";
import { Icon } from "../../parts/icon";

interface Props {
  dashboard: Dashboard;
  /** The reason why the dashboard cannot be changed: it is built in, or the name of its file. */
  fixedBy: string | undefined;
  isEditing: boolean;
  isChanged: boolean;
  canUndo: boolean;
  canAdd: boolean;
  busy: boolean;
  frame: TimeFrame;
  onTitle: (title: string) => void;
  onEdit: () => void;
  onStopEditing: () => void;
  onSave: () => void;
  onUndo: () => void;
  onAdd: (kind: "chart" | "text" | "row") => void;
  onOpen: (dialog: "variables" | "save-as" | "folder") => void;
  /** Makes the shown time frame the dashboard's default. */
  onKeepTimeFrame: () => void;
  onExport: () => void;
}

export function BoardHead(props: Props) {
  return (
    <header class="head board-head">
      {props.isEditing ? (
        <>
          <h1 class="hidden-text">{props.dashboard.title}</h1>
          <input
            type="text"
            class="board-title"
            aria-label="Title of the dashboard"
            maxLength={200}
            value={props.dashboard.title}
            onInput={(event) => props.onTitle(event.currentTarget.value)}
          />
        </>
      ) : (
        <h1>
          {props.dashboard.title}{" "}
          {props.fixedBy ? <span class="badge">{props.fixedBy}</span> : null}
        </h1>
      )}
      {props.isEditing ? <EditActions {...props} /> : <ViewActions {...props} />}
    </header>
  );
}

function ViewActions({ fixedBy, frame, onEdit, onOpen, onExport }: Props) {
  return (
    <>
      <AnnotateButton frame={frame} />
      <button type="button" class="button" onClick={onEdit}>
        <Icon name="pencil" /> {fixedBy ? "Edit a copy" : "Edit"}
      </button>
      <Menu
        label="More about this dashboard"
        items={[
          { label: "Save as…", onSelect: () => onOpen("save-as") },
          { label: "Export as JSON", onSelect: onExport },
        ]}
      >
        <Icon name="more" />
      </Menu>
    </>
  );
}

function EditActions(props: Props) {
  const { fixedBy, isChanged, canUndo, canAdd, busy } = props;
  return (
    <>
      <button type="button" class="button" disabled={!canAdd} onClick={() => props.onAdd("chart")}>
        <Icon name="plus" /> Chart
      </button>
      <button type="button" class="button" disabled={!canAdd} onClick={() => props.onAdd("text")}>
        <Icon name="plus" /> Text
      </button>
      <button type="button" class="button" disabled={!canAdd} onClick={() => props.onAdd("row")}>
        <Icon name="plus" /> Row
      </button>
      <button
        type="button"
        class="button icon-only"
        aria-label="Undo the last change"
        title="Undo"
        disabled={!canUndo}
        onClick={props.onUndo}
      >
        <Icon name="undo" />
      </button>
      <Menu
        label="More about this dashboard"
        items={[
          { label: "Variables…", onSelect: () => props.onOpen("variables") },
          { label: "Folder…", onSelect: () => props.onOpen("folder") },
          { label: "Open with this time frame", onSelect: props.onKeepTimeFrame },
          { label: "Save as…", onSelect: () => props.onOpen("save-as") },
          { label: "Export as JSON", onSelect: props.onExport },
        ]}
      >
        <Icon name="more" />
      </Menu>
      <button type="button" class="button" onClick={props.onStopEditing}>
        {isChanged ? "Discard" : "Done"}
      </button>
      <button
        type="button"
        class="button primary"
        disabled={busy || (!isChanged && !fixedBy)}
        onClick={props.onSave}
      >
        {fixedBy ? "Save as…" : "Save"}
      </button>
    </>
  );
}
