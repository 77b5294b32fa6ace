/** The menu of a chart: its axis, links, files, an alert rule. */
import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useAttempt } from "../parts/attempt";
import { Dialog, Problem } from "../parts/dialog";
import { Icon } from "../parts/icon";
import type { ChartSource } from "../rules/of-chart";
import type { RuleDialogProps } from "../rules/rule-dialog";
import type { LiveChart } from "./live";
import { Menu } from "./menu";
import { copy, linkTo, savePicture, saveTable } from "./save";
import type { ChartState } from "./state";

/** The form for an alert rule, loaded on demand. */
interface OpenRule extends Omit<RuleDialogProps, "onClose"> {
  RuleDialog: ComponentType<RuleDialogProps>;
}

interface MoreProps {
  live: LiveChart;
  change: (next: Partial<ChartState>) => void;
}

export function More({ live, change }: MoreProps) {
  const rule = useSignal<OpenRule | undefined>(undefined);
  const { error, run } = useAttempt();
  const openRule = () =>
    run(async () => {
      const parts = [import("../rules/rule-dialog"), import("../rules/of-chart")] as const;
      const [{ RuleDialog }, { ruleOf }] = await Promise.all(parts);
      rule.value = { RuleDialog, ...ruleOf(shownBy(live)) };
    });
  const [isLog, isStacked] = [live.isLog.value, live.isStacked.value];
  const spec = live.spec.value;
  const unlessUsual = (value: boolean, usual: boolean) => (value === usual ? undefined : value);
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
            onSelect: () => change({ log: unlessUsual(!isLog, spec.log) }),
          },
          {
            label: "Stacked areas",
            checked: isStacked,
            onSelect: () => change({ stacked: unlessUsual(!isStacked, spec.stacked) }),
          },
          { label: "Copy link", onSelect: () => void copy(linkTo(window(), false)) },
          {
            label: "Copy link to this time range",
            onSelect: () => void copy(linkTo(window(), true)),
          },
          { label: "Save as PNG", onSelect: () => picture(live) },
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
          <Problem message={`The form could not be loaded: ${error.value}`} />
        </Dialog>
      )}
      {rule.value && (
        <rule.value.RuleDialog {...rule.value} onClose={() => (rule.value = undefined)} />
      )}
    </>
  );
}

function shownBy(live: LiveChart): ChartSource {
  const { display: frameDisplay } = live.frame.choice.peek();
  const series = live.loader.data.peek()?.series ?? [];
  return { spec: live.spec.peek(), series, frameDisplay };
}

function picture(live: LiveChart): void {
  const canvas = live.plot?.canvas;
  const { title } = live.spec.peek();
  const window = live.frame.window.peek();
  if (canvas) void savePicture({ title, window, canvas, rows: live.rows.peek() });
}
