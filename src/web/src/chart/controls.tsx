/** The controls of a time frame: resolution, range, display, zone, and moves in time. */
import { Icon } from "../parts/icon";
import { narrow } from "../parts/narrow";
import { preferredZone } from "../app/preferences";
import {
  RANGE_LABELS,
  RESOLUTIONS,
  rangesOf,
  withRange,
  withResolution,
  type FrameDisplay,
} from "../model/timeframe";
import type { TimeFrame } from "./frame";
import { timeRangeText } from "./save";
import { ZonePicker } from "./zone-picker";

interface ChoicesProps<T extends string> {
  label: string;
  choices: readonly { value: T; label: string }[];
  value: T | undefined;
  onChoose: (value: T) => void;
}

/** A choice of one value: buttons side by side, or a list on narrow screens. */
function Choices<T extends string>({ label, choices, value, onChoose }: ChoicesProps<T>) {
  if (narrow.value) {
    return (
      <select
        aria-label={label}
        value={value ?? ""}
        onChange={(event) => {
          const chosen = choices.find((choice) => choice.value === event.currentTarget.value);
          if (chosen) onChoose(chosen.value);
        }}
      >
        {value === undefined && <option value="">custom range</option>}
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.label}
          </option>
        ))}
      </select>
    );
  }
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
  { value: "auto", label: "auto" },
  { value: "avg_per_sec", label: "avg/sec" },
  { value: "total", label: "total" },
];

export function TimeControls({ frame }: { frame: TimeFrame }) {
  const choice = frame.choice.value;
  const window = frame.window.value;
  const canGoBack = frame.zoomHistory.value.length > 0 || choice.fixed !== undefined;
  const ranges = rangesOf(choice.resolution).map((value) => ({
    value,
    label: RANGE_LABELS[value],
  }));
  return (
    <div class="time-controls">
      <Choices
        label="Resolution"
        choices={RESOLUTIONS}
        value={choice.resolution}
        onChoose={(resolution) => frame.set(withResolution(choice, resolution))}
      />
      <Choices
        label="Range"
        choices={ranges}
        value={choice.fixed ? undefined : choice.range}
        onChoose={(range) => frame.set(withRange(choice, range))}
      />
      <Choices
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
      <div class="time-along">
        <div class="choices" role="group" aria-label="Move in time">
          <StepButton label="Earlier" icon="left" onClick={() => frame.pan(-0.5)} />
          <StepButton label="Later" icon="right" onClick={() => frame.pan(0.5)} />
          <StepButton label="Zoom in" icon="plus" onClick={() => frame.magnify(2)} />
          <StepButton label="Zoom out" icon="minus" onClick={() => frame.magnify(0.5)} />
        </div>
        <button
          type="button"
          class="button"
          disabled={!canGoBack}
          title="Undo zoom (double-click a chart)"
          onClick={() => frame.back()}
        >
          Back
        </button>
        {choice.fixed ? (
          <button type="button" class="button" onClick={() => frame.follow()}>
            Now
          </button>
        ) : null}
        <span class="time-stretch num">{timeRangeText(window)}</span>
      </div>
    </div>
  );
}

interface StepProps {
  label: string;
  icon: "left" | "right" | "plus" | "minus";
  onClick: () => void;
}

function StepButton({ label, icon, onClick }: StepProps) {
  return (
    <button type="button" aria-label={label} title={label} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}
