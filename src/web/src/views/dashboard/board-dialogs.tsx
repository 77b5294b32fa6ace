/** The dialogs of a dashboard, of which one is open at a time. */
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Dashboard, Panel, Variable } from "../../api/types";
import type { TimeFrame } from "../../chart/frame";
import type { ChosenValues } from "../../queries/variables";
import { ConflictDialog } from "./conflict-dialog";
import { FolderDialog } from "./folder-dialog";
import { NameDialog } from "./name-dialog";
import { ChartEditor, TextEditor } from "./panel-editor";
import { RowEditor } from "./row-editor";
import { VariablesDialog } from "./variables-dialog";

export type Dialogs =
  | { dialog: "variables" | "save-as" | "folder" }
  | { dialog: "panel"; panel: Panel; isNew: boolean }
  | { dialog: "conflict"; found: number | null };

interface Props {
  open: Dialogs | undefined;
  name: string;
  dashboard: Dashboard;
  /** The title of the stored dashboard. */
  savedTitle: string;
  frame: TimeFrame;
  chosen: ChosenValues;
  onClose: () => void;
  onPanel: (panel: Panel, isNew: boolean) => void;
  onVariables: (variables: Variable[]) => void;
  onFolder: (folder: string) => void;
  onSaveAs: (name: string, title: string) => Promise<void>;
  onOverwrite: (version: number | null) => Promise<void>;
  onOpen: (dialog: "save-as") => void;
  onUseStored: () => void;
}

export function BoardDialog(props: Props) {
  const { open, onClose, onPanel } = props;
  if (!open) return null;
  switch (open.dialog) {
    case "variables":
      return (
        <VariablesDialog
          variables={props.dashboard.variables}
          onClose={onClose}
          onDone={props.onVariables}
        />
      );
    case "folder":
      return (
        <FolderDialog
          folder={props.dashboard.folder ?? ""}
          onClose={onClose}
          onDone={props.onFolder}
        />
      );
    case "save-as":
      return <SaveAsDialog {...props} />;
    case "conflict":
      return (
        <ConflictDialog
          name={props.name}
          conflictingVersion={open.found}
          onClose={onClose}
          onOverwrite={props.onOverwrite}
          onSaveAs={() => props.onOpen("save-as")}
          onUseStored={props.onUseStored}
        />
      );
    case "panel": {
      const { panel, isNew } = open;
      const commonProps = { isNew, onClose, onDone: (done: Panel) => onPanel(done, isNew) };
      if (panel.kind === "row") {
        const { variables } = props.dashboard;
        return <RowEditor panel={panel} variables={variables} {...commonProps} />;
      }
      if (panel.kind === "text") return <TextEditor panel={panel} {...commonProps} />;
      return (
        <ChartEditor
          panel={panel}
          frame={props.frame}
          variables={props.dashboard.variables}
          chosen={props.chosen}
          {...commonProps}
        />
      );
    }
  }
}

function SaveAsDialog({ name, dashboard, savedTitle, onClose, onSaveAs }: Props) {
  const storedDashboards = useResource("dashboards", (signal) => api.dashboards(signal)).value;
  const takenNames = storedDashboards.data?.dashboards.map((entry) => entry.name) ?? [];
  const { title } = dashboard;
  return (
    <NameDialog
      heading="Save as"
      action="Save"
      title={title === savedTitle ? `${title || name} (copy)` : title}
      taken={[...takenNames, name]}
      onClose={onClose}
      onSave={onSaveAs}
    />
  );
}
