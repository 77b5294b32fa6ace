/** Checkboxes that choose alerts, and the actions for all chosen alerts. */
import { useSignal } from "@preact/signals";
import { countWithNoun } from "../../model/words";
import { Icon } from "../../parts/icon";
import { AcknowledgeDialog } from "./acknowledge-dialog";
import { CHOSEN_MAX, coveredBy, NOTHING_CHOSEN, withClick, type Choice } from "./chosen";
import { Coverage } from "./coverage";
import { ownLabels, type ListedAlert } from "./listed";
import { SilenceDialog } from "./silence-dialog";

export interface Selection {
  /** The chosen alerts that are listed. */
  chosen: ReadonlySet<string>;
  click: (key: string, options: { order: readonly string[]; isRange: boolean }) => void;
  choose: (keys: readonly string[]) => void;
}

/** The choice among listed alerts; an alert that is no longer listed is not chosen. */
export function useSelection(listed: readonly ListedAlert[]): Selection {
  const choice = useSignal<Choice>(NOTHING_CHOSEN);
  const chosen = new Set(
    listed.map(({ key }) => key).filter((key) => choice.value.chosen.has(key)),
  );
  return {
    chosen,
    click: (key, options) => (choice.value = withClick({ ...choice.peek(), chosen }, key, options)),
    choose: (keys) =>
      (choice.value = { chosen: new Set(keys.slice(0, CHOSEN_MAX)), anchor: undefined }),
  };
}

const CHECKBOX = "alert-choice";

/** The keys of the alerts with a visible checkbox, from top to bottom. */
function visibleKeys(clicked: Element): string[] {
  const boxes = clicked.closest("section")?.querySelectorAll<HTMLInputElement>(`.${CHECKBOX}`);
  return [...(boxes ?? [])].map(({ value }) => value);
}

export function AlertChoice({ row, selection }: { row: ListedAlert; selection: Selection }) {
  const values = ownLabels(row).map(([, value]) => value);
  return (
    <input
      type="checkbox"
      class={CHECKBOX}
      aria-label={`Select ${[row.rule.name, ...values].join(" ")}`}
      title="Select; Shift-click selects a range"
      value={row.key}
      checked={selection.chosen.has(row.key)}
      onClick={(event) =>
        selection.click(row.key, {
          order: visibleKeys(event.currentTarget),
          isRange: event.shiftKey,
        })
      }
    />
  );
}

/** An open dialog, with the alerts of that moment: the list changes while it is open. */
interface OpenDialog {
  what: "silence" | "acknowledge";
  rows: readonly ListedAlert[];
  active: readonly ListedAlert[];
}

interface BarProps {
  listed: readonly ListedAlert[];
  /** All active alerts, of which a silence may cover more than the chosen ones. */
  active: readonly ListedAlert[];
  selection: Selection;
  onChange: () => void;
}

/** The actions for all chosen alerts; nothing while no alert is chosen. */
export function SelectionBar({ listed, active, selection, onChange }: BarProps) {
  const dialog = useSignal<OpenDialog | undefined>(undefined);
  const rows = listed.filter(({ key }) => selection.chosen.has(key));
  const open = (what: OpenDialog["what"]) => (dialog.value = { what, rows, active });
  const close = () => (dialog.value = undefined);
  const done = () => {
    selection.choose([]);
    onChange();
  };
  const all = Math.min(listed.length, CHOSEN_MAX);
  return (
    <>
      <p class="hidden-text" role="status">
        {rows.length > 0 ? `${countWithNoun(rows.length, "alert")} selected` : ""}
      </p>
      {rows.length > 0 && (
        <div class="alert-chosen" role="group" aria-label="Selected alerts">
          <strong class="num">{rows.length.toLocaleString("en")} selected</strong>
          <button type="button" class="button small" onClick={() => open("acknowledge")}>
            <Icon name="check" /> Acknowledge
          </button>
          <button type="button" class="button small" onClick={() => open("silence")}>
            <Icon name="mute" /> Silence
          </button>
          {rows.length < all && (
            <button
              type="button"
              class="button small quiet"
              onClick={() => selection.choose(listed.map(({ key }) => key))}
            >
              Select {all.toLocaleString("en")}
            </button>
          )}
          <button type="button" class="button small quiet" onClick={() => selection.choose([])}>
            Clear
          </button>
        </div>
      )}
      {dialog.value && <ChosenDialog {...dialog.value} onClose={close} onDone={done} />}
    </>
  );
}

interface DialogProps extends OpenDialog {
  onClose: () => void;
  onDone: () => void;
}

function ChosenDialog({ what, rows, active, onClose, onDone }: DialogProps) {
  const actions = { onClose, onDone };
  if (what === "silence") return <SilenceDialog chosen={rows} active={active} {...actions} />;
  const isCovered = coveredBy(rows.map(({ alert }) => alert.labels));
  const covered = active.filter(({ alert }) => isCovered(alert.labels));
  return (
    <AcknowledgeDialog
      alerts={rows.map(({ alert }) => alert)}
      coverage={<Coverage chosen={rows} covered={covered} />}
      {...actions}
    />
  );
}
