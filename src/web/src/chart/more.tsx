/** The menu of a chart: its axis, links, files, an alert rule. */
import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useAttempt } from "../parts/attempt";
import { copyText } from "../parts/clipboard";
import { Dialog, ErrorLine } from "../parts/dialog";
import { Icon } from "../parts/icon";
import type { ChartSource } from "../rules/of-chart";
import type { RuleDialogProps } from "../rules/rule-dialog";
import { comparisonItems } from "./compare-items";
import type { LiveChart } from "./live";
import { Menu } from "./menu";
import { linkTo, savePicture, saveTable } from "./save";
import type { ChartState } from "./state";

/** The form for an alert rule, loaded on demand. */
interface OpenRule extends Omit<RuleDialogProps, "onClose"> {
  RuleDialog: ComponentType<RuleDialogProps>;
}

interface MoreProps {
  live: LiveChart;
  changeState: (next: Partial<ChartState>) => void;
}

export function More({ live, changeState }: MoreProps) {
  const rule = useSignal<OpenRule | undefined>(undefined);
  const { error, run } = useAttempt();
  const openRule = () =>
    run(async () => {
      const parts = [import("../rules/rule-dialog"), import("../rules/of-chart")] as const;
      const [{ RuleDialog }, { draftRule: ruleOf }] = await Promise.all(parts);
      rule.value = { RuleDialog, ...ruleOf(chartSource(live)) };
    });
  const [isLog, isStacked, isHeat] = [live.isLog.value, live.isStacked.value, live.isHeat.value];
  const spec = live.spec.value;
  const unlessDefault = (value: boolean, byDefault: boolean) =>
    value === byDefault ? undefined : value;
  const window = () => live.frame.window.peek();
  return (
    <>
      <Menu
        label="More"
        items={[
          {
            label: "Logarithmic axis",
            checked: isLog,
            disabled: isStacked,
            onSelect: () => changeState({ log: unlessDefault(!isLog, live.isLogByDefault.peek()) }),
          },
          {
            label: "Stacked areas",
            checked: isStacked,
            disabled: live.hasCells.value,
            onSelect: () => changeState({ stacked: unlessDefault(!isStacked, spec.stacked) }),
          },
          {
            label: "Heat map",
            checked: isHeat,
            disabled: isStacked || spec.display === "distribution",
            onSelect: () =>
              changeState({ heat: unlessDefault(!isHeat, live.isHeatByDefault.peek()) }),
          },
          ...comparisonItems(live, changeState),
          {
            label: "What moved?",
            onSelect: () => live.openMoved(window().start, window().end),
          },
          { label: "Copy link", onSelect: () => void copyText(linkTo(window(), false)) },
          {
            label: "Copy link to this time range",
            onSelect: () => void copyText(linkTo(window(), true)),
          },
          { label: "Save as PNG", onSelect: () => savePlotPicture(live) },
          { label: "Alert rule…", onSelect: () => void openRule() },
          {
            label: "Save as CSV",
            onSelect: () => {
              const data = live.loader.data.peek();
              if (data) saveTable(spec.title, data, live.shown);
            },
          },
        ]}
      >
        <Icon name="more" />
      </Menu>
      {error.value && (
        <Dialog title="Alert rule" onClose={() => (error.value = undefined)}>
          <ErrorLine message={`The form could not be loaded: ${error.value}`} />
        </Dialog>
      )}
      {rule.value && (
        <rule.value.RuleDialog {...rule.value} onClose={() => (rule.value = undefined)} />
      )}
    </>
  );
}

function chartSource(live: LiveChart): ChartSource {
  const { display: frameDisplay } = live.frame.choice.peek();
  const series = (live.loader.data.peek()?.series ?? []).filter(({ ghostOf }) => !ghostOf);
  return { spec: live.spec.peek(), series, frameDisplay };
}

function savePlotPicture(live: LiveChart): void {
  const canvas = live.plot?.canvas;
  const { title } = live.spec.peek();
  const window = live.frame.window.peek();
  if (canvas) void savePicture({ title, window, canvas, rows: live.rows.peek() });
}
