/** A dialog that adds a chart to an existing or new dashboard. */
import { useSignal } from "@preact/signals";
import { ApiError, api } from "../../api/client";
import { useResource } from "../../api/resource";
import type { ChartPanel } from "../../api/types";
import { freeName, slugOf } from "../../model/slug";
import { useAttempt } from "../../parts/attempt";
import { Dialog, FormDialog, TextField } from "../../parts/dialog";
import { Icon } from "../../parts/icon";
import { Loading } from "../../parts/states";
import { emptyDashboard, withPanel } from "../dashboard/draft";

interface Props {
  panel: ChartPanel;
  onClose: () => void;
}

/** The number of attempts when others save at the same time. */
const ATTEMPTS_MAX = 5;

async function addPanelTo(name: string, panel: ChartPanel): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const { version, dashboard } = await api.dashboard(name);
    try {
      await api.saveDashboard(name, version, withPanel(dashboard, panel));
      return;
    } catch (cause) {
      const isConflict = cause instanceof ApiError && cause.code === "conflict";
      if (!isConflict || attempt === ATTEMPTS_MAX) throw cause;
    }
  }
}

export function SaveDialog({ panel, onClose }: Props) {
  const dashboards = useResource("dashboards", (signal) => api.dashboards(signal)).value;
  const title = useSignal(panel.title);
  const target = useSignal("");
  const newTitle = useSignal("");
  const { busy, error, run } = useAttempt();
  const saved = useSignal<string | undefined>(undefined);
  const allDashboards = dashboards.data?.dashboards ?? [];
  const editable = allDashboards.filter(({ builtin, file }) => !builtin && !file);

  const save = () => {
    const titledPanel = { ...panel, title: title.value.trim() };
    const isNew = target.value === "";
    if (isNew && newTitle.value.trim() === "") {
      error.value = "Enter a title for the new dashboard.";
      return;
    }
    void run(async () => {
      const takenNames = allDashboards.map(({ name }) => name);
      const name = isNew ? freeName(slugOf(newTitle.value), takenNames, "dashboard") : target.value;
      const newDashboard = emptyDashboard(newTitle.value.trim());
      if (isNew) await api.saveDashboard(name, null, withPanel(newDashboard, titledPanel));
      else await addPanelTo(name, titledPanel);
      saved.value = name;
    });
  };

  if (saved.value !== undefined) {
    return (
      <Dialog title="Saved" onClose={onClose}>
        <p role="status">The chart was added to the dashboard.</p>
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Stay
          </button>
          <a class="button primary" href={`/dashboards/${saved.value}`}>
            Open dashboard <Icon name="right" />
          </a>
        </footer>
      </Dialog>
    );
  }
  return (
    <FormDialog
      title="Save to a dashboard"
      action="Save"
      isReady={!busy.value}
      error={error.value ?? dashboards.error?.message}
      onSubmit={save}
      onClose={onClose}
    >
      {dashboards.loading && !dashboards.data ? <Loading what="dashboards" /> : null}
      <TextField
        label="Chart title"
        maxLength={200}
        value={title.value}
        onText={(text) => (title.value = text)}
      />
      <label class="labelled">
        Dashboard
        <select
          value={target.value}
          onChange={(event) => (target.value = event.currentTarget.value)}
        >
          <option value="">New dashboard</option>
          {editable.map((entry) => (
            <option key={entry.name} value={entry.name}>
              {entry.title || entry.name}
            </option>
          ))}
        </select>
      </label>
      {target.value === "" ? (
        <TextField
          label="Dashboard title"
          maxLength={200}
          value={newTitle.value}
          onText={(text) => (newTitle.value = text)}
        />
      ) : null}
    </FormDialog>
  );
}
