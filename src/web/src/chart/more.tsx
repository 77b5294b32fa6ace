/** What else can be done with a chart: its axis, links, files, a rule of it. */
import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { Icon } from "../parts/icon";
import { expressionOf, nameOfAlert } from "../rules/draft";
import type { RuleDialogProps } from "../rules/rule-dialog";
import type { LiveChart } from "./live";
import { Menu } from "./menu";
import { copy, linkTo, savePicture, saveTable } from "./save";
import type { ChartState } from "./state";

interface MoreProps {
  live: LiveChart;
  change: (next: Partial<ChartState>) => void;
}

export function More({ live, change }: MoreProps) {
  const dialog = useSignal<ComponentType<RuleDialogProps> | undefined>(undefined);
  const openRule = async () => {
    dialog.value = (await import("../rules/rule-dialog")).RuleDialog;
  };
  const RuleDialog = dialog.value;
  const [isLog, isStacked] = [live.isLog.value, live.isStacked.value];
  const wish = live.wish.value;
  const orUndefined = (value: boolean, own: boolean) => (value === own ? undefined : value);
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
            onSelect: () => change({ log: orUndefined(!isLog, wish.log) }),
          },
          {
            label: "Stacked areas",
            checked: isStacked,
            onSelect: () => change({ stacked: orUndefined(!isStacked, wish.stacked) }),
          },
          { label: "Copy link", onSelect: () => void copy(linkTo(window(), false)) },
          {
            label: "Copy link to this stretch of time",
            onSelect: () => void copy(linkTo(window(), true)),
          },
          { label: "Save as PNG", onSelect: () => picture(live) },
          { label: "Alert rule…", onSelect: () => void openRule() },
          {
            label: "Save as CSV",
            onSelect: () => {
              const data = live.loader.data.peek();
              if (data) saveTable(wish.title, data, live.shown);
            },
          },
        ]}
      >
        <Icon name="more" />
      </Menu>
      {RuleDialog && <RuleDialog {...ruleOf(live)} onClose={() => (dialog.value = undefined)} />}
    </>
  );
}

/** A rule to begin with: of the first thing that the chart shows. */
function ruleOf(live: LiveChart): Omit<RuleDialogProps, "onClose"> {
  const { queries, title, display } = live.wish.peek();
  const series = live.loader.data.peek()?.series ?? [];
  const { display: frameDisplay } = live.frame.choice.peek();
  const expressions = queries
    .filter(({ hidden }) => !hidden)
    .map((query) => {
      const drawn = series.find(({ metric }) => query.kind === "metric" && metric === query.metric);
      return expressionOf(query, { kind: drawn?.kind, display: display ?? frameDisplay });
    });
  const [expression = ""] = expressions;
  const name = nameOfAlert(title);
  return {
    draft: {
      name,
      expression,
      operator: ">",
      value: "",
      lasting: "5m",
      severity: "warning",
      summary: "",
    },
    expressions,
  };
}

function picture(live: LiveChart): void {
  const canvas = live.plot?.canvas;
  const { title } = live.wish.peek();
  const window = live.frame.window.peek();
  if (canvas) void savePicture({ title, window, canvas, rows: live.rows.peek() });
}
