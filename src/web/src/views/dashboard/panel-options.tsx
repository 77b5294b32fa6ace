/** The form of a panel with values: its kind, unit, scale, thresholds and repetition. */
import { useId } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { ChartPanel, ValuesKind, Variable } from "../../api/types";
import { LinkChoice } from "./panel-link";
import { readThresholds, thresholdsText } from "./thresholds";
import { REDUCTIONS } from "./values/reduce";

interface Props {
  panel: ChartPanel;
  variables: readonly Variable[];
  onChange: (panel: ChartPanel) => void;
}

export const KINDS: readonly { value: ValuesKind; label: string }[] = [
  { value: "chart", label: "Chart" },
  { value: "stat", label: "Number" },
  { value: "gauge", label: "Gauge" },
  { value: "bars", label: "Bars" },
  { value: "table", label: "Table" },
  { value: "heatmap", label: "Heat map" },
  { value: "states", label: "States over time" },
];

const hasLines = (kind: ValuesKind) => kind === "chart" || kind === "heatmap";
const isReduced = (kind: ValuesKind) => !hasLines(kind) && kind !== "states";

/** Changed fields of a panel; `undefined` removes a field. */
type Change = { [Name in keyof ChartPanel]?: ChartPanel[Name] | undefined };

/** The panel with only the fields that its kind permits and that differ from the defaults. */
export function withOptions(panel: ChartPanel, change: Change): ChartPanel {
  const { stacked, log, unit, reduce, min, max, thresholds, repeat, link, ...rest } = {
    ...panel,
    ...change,
  } as { [Name in keyof ChartPanel]: ChartPanel[Name] };
  const { kind } = rest;
  const isScaled = kind === "gauge" || kind === "bars";
  return {
    ...rest,
    ...(kind === "chart" && stacked ? { stacked } : {}),
    ...(hasLines(kind) && log && !stacked ? { log } : {}),
    ...(unit ? { unit } : {}),
    ...(isReduced(kind) && reduce && reduce !== "last" ? { reduce } : {}),
    ...(isScaled && min !== undefined ? { min } : {}),
    ...(isScaled && max !== undefined ? { max } : {}),
    ...(thresholds && thresholds.length > 0 ? { thresholds } : {}),
    ...(repeat ? { repeat } : {}),
    ...(link ? { link } : {}),
  };
}

export function PanelOptions({ panel, variables, onChange }: Props) {
  const { kind, unit, reduce, min, max, stacked, log } = panel;
  const set = (change: Change) => onChange(withOptions(panel, change));
  return (
    <>
      <label class="labelled">
        Kind
        <select
          value={kind}
          onChange={(event) => set({ kind: event.currentTarget.value as ValuesKind })}
        >
          {KINDS.map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <UnitField unit={unit} onUnit={(unit) => set({ unit })} />
      {isReduced(kind) && (
        <label class="labelled">
          Value
          <select
            value={reduce ?? "last"}
            onChange={(event) => set({ reduce: event.currentTarget.value as "last" })}
          >
            {REDUCTIONS.map(({ value, label }) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </label>
      )}
      {(kind === "gauge" || kind === "bars") && (
        <>
          <NumberField label="Min" value={min} onNumber={(min) => set({ min })} />
          <NumberField label="Max" value={max} onNumber={(max) => set({ max })} />
        </>
      )}
      <ThresholdsField panel={panel} onChange={(thresholds) => set({ thresholds })} />
      <RepeatChoice
        repeat={panel.repeat}
        variables={variables}
        onChange={(repeat) => set({ repeat: repeat ?? "" })}
      />
      <LinkChoice link={panel.link} onLink={(link) => set({ link })} />
      {hasLines(kind) && (
        <div class="panel-checks">
          {kind === "chart" && (
            <Check
              label="Stacked areas"
              checked={stacked ?? false}
              onChange={(stacked) => set({ stacked })}
            />
          )}
          <Check
            label="Logarithmic axis"
            checked={log ?? false}
            disabled={stacked ?? false}
            onChange={(log) => set({ log })}
          />
        </div>
      )}
    </>
  );
}

interface CheckProps {
  label: string;
  checked: boolean;
  disabled?: boolean;
  onChange: (checked: boolean) => void;
}

function Check({ label, checked, disabled = false, onChange }: CheckProps) {
  return (
    <label class="checked">
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  );
}

function UnitField({ unit, onUnit }: { unit: string | undefined; onUnit: (unit: string) => void }) {
  return (
    <label class="labelled">
      Unit
      <input
        type="text"
        maxLength={32}
        list="units"
        placeholder="as measured"
        value={unit ?? ""}
        onChange={(event) => onUnit(event.currentTarget.value.trim())}
      />
      <datalist id="units">
        {["bytes", "seconds", "percent", "ratio"].map((word) => (
          <option key={word} value={word} />
        ))}
      </datalist>
    </label>
  );
}

interface NumberProps {
  label: string;
  value: number | undefined;
  onNumber: (value: number | undefined) => void;
}

function NumberField({ label, value, onNumber }: NumberProps) {
  return (
    <label class="labelled">
      {label}
      <input
        type="number"
        step="any"
        placeholder="auto"
        value={value ?? ""}
        onChange={(event) => {
          const number = event.currentTarget.valueAsNumber;
          onNumber(Number.isFinite(number) ? number : undefined);
        }}
      />
    </label>
  );
}

interface ThresholdsProps {
  panel: ChartPanel;
  onChange: (thresholds: NonNullable<ChartPanel["thresholds"]>) => void;
}

function ThresholdsField({ panel, onChange }: ThresholdsProps) {
  const fault = useSignal<string | undefined>(undefined);
  const faultId = useId();
  return (
    <label class="labelled">
      Thresholds
      <input
        type="text"
        maxLength={200}
        placeholder="80 warn, 90 bad"
        value={thresholdsText(panel.thresholds)}
        aria-invalid={fault.value !== undefined}
        aria-describedby={fault.value ? faultId : undefined}
        onChange={(event) => {
          const read = readThresholds(event.currentTarget.value);
          fault.value = typeof read === "string" ? read : undefined;
          if (typeof read !== "string") onChange(read);
        }}
      />
      {fault.value && (
        <small id={faultId} class="problem" role="alert">
          {fault.value}
        </small>
      )}
    </label>
  );
}

interface RepeatProps {
  repeat: string | undefined;
  variables: readonly Variable[];
  onChange: (repeat: string | undefined) => void;
}

export function RepeatChoice({ repeat, variables, onChange }: RepeatProps) {
  if (variables.length === 0) return null;
  return (
    <label class="labelled">
      Repeat for
      <select
        value={repeat ?? ""}
        onChange={(event) => onChange(event.currentTarget.value || undefined)}
      >
        <option value="">nothing</option>
        {variables.map(({ name }) => (
          <option key={name} value={name}>
            each ${name}
          </option>
        ))}
      </select>
    </label>
  );
}
