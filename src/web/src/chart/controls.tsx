/** The controls of a time frame: resolution, range, display, zone, refresh, and moves in time. */
import { Icon, type IconName } from "../parts/icon";
import { wide } from "../parts/narrow";
import { preferredZone } from "../app/preferences";
import { rangeLabel } from "../model/range";
import type { RefreshChoice } from "../model/refresh";
import {
  RESOLUTIONS,
  rangesOf,
  withRange,
  withResolution,
  type FrameDisplay,
} from "../model/timeframe";
import type { TimeFrame } from "./frame";
import { TimeRange } from "./time-range";
import { ZonePicker } from "./zone-picker";

interface ChoicesProps<T extends string> {
  label: string;
  choices: readonly { value: T; label: string }[];
  value: T | undefined;
  onChoose: (value: T) => void;
}

/** A choice of one value from a list. */
function Select<T extends string>({ label, choices, value, onChoose }: ChoicesProps<T>) {
  return (
    <select
      aria-label={label}
      title={label}
      value={value ?? ""}
      onChange={(event) => {
        const chosen = choices.find((choice) => choice.value === event.currentTarget.value);
        if (chosen) onChoose(chosen.value);
      }}
    >
      {value === undefined && <option value="">fixed</option>}
      {choices.map((choice) => (
        <option key={choice.value} value={choice.value}>
          {choice.label}
        </option>
      ))}
    </select>
  );
}

/** A choice of one value: buttons side by side, or a list without the space for them. */
function Choices<T extends string>(props: ChoicesProps<T>) {
  const { label, choices, value, onChoose } = props;
  if (!wide.value) return <Select {...props} />;
  return (
    <div class="choices" role="group" aria-label={label}>
      {choices.map((choice) => (
        <button
          key={choice.value}
          type="button"
          aria-pressed={choice.value === value}
          onClick={() => onChoose(choice.value)}
        >
          {choice.label}
        </button>
      ))}
    </div>
  );
}

const DISPLAYS: readonly { value: FrameDisplay | "auto"; label: string }[] = [
  { value: "auto", label: "auto value" },
  { value: "avg_per_sec", label: "avg/sec" },
  { value: "total", label: "total" },
];

const REFRESHES: readonly { value: RefreshChoice | "auto"; label: string }[] = [
  { value: "auto", label: "live" },
  { value: "10s", label: "10 s" },
  { value: "30s", label: "30 s" },
  { value: "1m", label: "1 min" },
  { value: "5m", label: "5 min" },
  { value: "off", label: "paused" },
];

export function TimeControls({ frame }: { frame: TimeFrame }) {
  const choice = frame.choice.value;
  const complaint = frame.complaint.value;
  const offered = rangesOf(choice.resolution);
  const ranges = offered.includes(choice.range) ? offered : [...offered, choice.range];
  return (
    <>
      <div class="time-controls">
        <Select
          label="Resolution"
          choices={RESOLUTIONS}
          value={choice.resolution}
          onChoose={(resolution) => frame.set(withResolution(choice, resolution))}
        />
        <Choices
          label="Range"
          choices={ranges.map((value) => ({ value, label: rangeLabel(value) }))}
          value={choice.fixed ? undefined : choice.range}
          onChoose={(range) => frame.set(withRange(choice, range))}
        />
        <TimeRange frame={frame} />
        <Moves frame={frame} />
        <div class="time-more">
          <Select
            label="Display"
            choices={DISPLAYS}
            value={choice.display ?? "auto"}
            onChoose={(display) =>
              frame.set({ ...choice, display: display === "auto" ? undefined : display })
            }
          />
          <ZonePicker
            zone={choice.zone}
            onChoose={(zone) => {
              preferredZone.value = zone;
              frame.set({ ...choice, zone });
            }}
          />
          <Refresh frame={frame} />
        </div>
      </div>
      {complaint && (
        <p class="time-complaint warn" role="status">
          {complaint}
        </p>
      )}
    </>
  );
}

/** Moves in time; Back undoes a zoom, and Now follows the clock again. */
function Moves({ frame }: { frame: TimeFrame }) {
  const isFixed = frame.choice.value.fixed !== undefined;
  const canGoBack = frame.zoomHistory.value.length > 0 || isFixed;
  return (
    <div class="choices time-moves" role="group" aria-label="Move in time">
      <MoveButton label="Earlier" icon="left" onClick={() => frame.pan(-0.5)} />
      <MoveButton label="Later" icon="right" onClick={() => frame.pan(0.5)} />
      <MoveButton label="Zoom in" icon="plus" onClick={() => frame.magnify(2)} />
      <MoveButton label="Zoom out" icon="minus" onClick={() => frame.magnify(0.5)} />
      {canGoBack && (
        <MoveButton
          label="Back"
          title="Undo zoom (double-click a chart)"
          icon="undo"
          onClick={() => frame.back()}
        />
      )}
      {isFixed && <MoveButton label="Now" icon="now" onClick={() => frame.follow()} />}
    </div>
  );
}

interface MoveProps {
  label: string;
  title?: string;
  icon: IconName;
  onClick: () => void;
}

function MoveButton({ label, title = label, icon, onClick }: MoveProps) {
  return (
    <button type="button" aria-label={label} title={title} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}

/** A refresh at once, and its interval. */
function Refresh({ frame }: { frame: TimeFrame }) {
  const isPaused = frame.refreshChoice.value === "off";
  return (
    <div class={isPaused ? "time-refresh is-paused" : "time-refresh"}>
      <button
        type="button"
        class="button icon-only"
        aria-label="Refresh now"
        title="Refresh now"
        onClick={() => frame.refreshNow()}
      >
        <Icon name="refresh" />
      </button>
      <Select
        label="Refresh interval"
        choices={REFRESHES}
        value={frame.refreshChoice.value ?? "auto"}
        onChoose={(interval) => frame.setRefresh(interval === "auto" ? undefined : interval)}
      />
    </div>
  );
}
