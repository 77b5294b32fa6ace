/** Active alerts, rules, service level objectives, silences and receivers. */
import type { ComponentChildren } from "preact";
import { api } from "../api/client";
import { useResource } from "../api/resource";
import type { RuleGroup, Silence } from "../api/types";
import { param, setParams } from "../app/address";
import { countText, countWithNoun } from "../model/words";
import { Icon, type IconName } from "../parts/icon";
import { Page } from "../parts/page";
import { Failed } from "../parts/states";
import { AlertList } from "./alerts/alert-list";
import { alertsOf, isSilenced, ruleNamed, type ListedAlert } from "./alerts/listed";
import { Receivers } from "./alerts/receivers";
import { RuleGroups } from "./alerts/rule-groups";
import { RulePage } from "./alerts/rule-page";
import { Silences } from "./alerts/silences";
import { SloList } from "./alerts/slo-list";
import { SloPage } from "./alerts/slo-page";
import { TARGET } from "./alerts/slos";
import { NoReceiver, useNoReceiver } from "./alerts/no-receiver";
import "../styles/tiles.css";
import "./alerts/alerts.css";
// Changes rows of alerts.css.
import "./alerts/rule-files.css";

const RULES_REFRESH_MS = 10_000;
const SILENCES_REFRESH_MS = 30_000;

const shownList = param("show", "alerts");
const ruleParam = param("rule");
const sloParam = param("slo");

export function Alerts() {
  const rules = useResource("rules", (signal) => api.rules(signal), {
    everyMs: RULES_REFRESH_MS,
  }).value;
  const silences = useResource("silences", (signal) => api.silences(signal), {
    everyMs: SILENCES_REFRESH_MS,
  });
  const { data: silenceList = [], error, reload } = silences.value;
  const noReceiver = useNoReceiver();
  const reloadAll = () => {
    reload();
    rules.reload();
  };
  return (
    <Page class="alerts-view" title="Alerts" what="the alerts" answer={rules}>
      {({ data: { groups } }) => {
        const listed = alertsOf(groups);
        const namedRule = ruleParam.value === "" ? undefined : ruleNamed(groups, ruleParam.value);
        if (namedRule) {
          return (
            <RulePage {...namedRule} listed={listed} silences={silenceList} onChange={reloadAll} />
          );
        }
        if (shownList.value === "slos" && sloParam.value !== "") {
          const shared = { groups, listed, silences: silenceList, onChange: reloadAll };
          return <SloPage key={sloParam.value} name={sloParam.value} {...shared} />;
        }
        return (
          <>
            {ruleParam.value !== "" && <Failed message={`There is no rule ${ruleParam.value}.`} />}
            <NoReceiver reason={noReceiver} />
            <Tiles listed={listed} groups={groups} isNotified={noReceiver === undefined} />
            <ListChoice listed={listed} groups={groups} silences={silenceList} />
            {shownList.value === "rules" ? (
              <RuleGroups groups={groups} />
            ) : shownList.value === "slos" ? (
              <SloList groups={groups} />
            ) : shownList.value === "receivers" ? (
              <Receivers />
            ) : shownList.value === "silences" ? (
              <Silences silences={silences.value.data} error={error} onChange={reloadAll} />
            ) : (
              <AlertList
                listed={listed}
                groups={groups}
                silences={silenceList}
                onChange={reloadAll}
              />
            )}
          </>
        );
      }}
    </Page>
  );
}

interface TilesProps {
  listed: ListedAlert[];
  groups: readonly RuleGroup[];
  /** True if any receiver is notified. */
  isNotified: boolean;
}

function Tiles({ listed, groups, isNotified }: TilesProps) {
  const rules = groups.flatMap((group) => group.rules);
  const failing = rules.filter(({ health }) => health === "err").length;
  const missed = groups.reduce((sum, group) => sum + group.missedEvaluations, 0);
  const count = (state: string) =>
    listed.filter((row) => !isSilenced(row) && row.alert.state === state).length;
  const silenced = listed.filter(isSilenced).length;
  return (
    <div class="tiles">
      <Tile name="Firing" state="down" count={count("firing")} show={{ state: "firing" }}>
        {isNotified ? "sent to receivers" : <span class="warn">not sent</span>}
      </Tile>
      <Tile name="Pending" state="late" count={count("pending")} show={{ state: "pending" }}>
        active, not yet for long enough
      </Tile>
      <Tile name="Silenced" count={silenced} show={{ state: "silenced" }}>
        active, not sent
      </Tile>
      <Tile name="Rules" count={rules.length} show={{ show: "rules" }}>
        {failing > 0 ? <span class="bad">{failing} failing</span> : "none failing"}
        {missed > 0 ? `, ${countWithNoun(missed, "evaluation")} missed` : ""}
      </Tile>
    </div>
  );
}

interface TileProps {
  name: string;
  count: number;
  state?: "down" | "late";
  /** The effect of a click. */
  show: { state?: string; show?: string };
  children: ComponentChildren;
}

const chosenState = param("state");

function Tile({ name, count, state, show, children }: TileProps) {
  const isShown =
    (show.show ?? "alerts") === shownList.value && (show.state ?? "") === chosenState.value;
  return (
    <button
      type="button"
      class="tile"
      aria-pressed={isShown}
      onClick={() =>
        setParams({ show: show.show, state: isShown && show.state ? undefined : show.state })
      }
    >
      <span class="tile-label">
        {state && <span class={`dot ${state}`} aria-hidden="true" />}
        {name}
      </span>
      <span class="tile-value num">{countText(count)}</span>
      <span class="tile-hint">{children}</span>
    </button>
  );
}

interface ListChoiceProps {
  listed: ListedAlert[];
  groups: readonly RuleGroup[];
  silences: readonly Silence[];
}

function ListChoice({ listed, groups, silences }: ListChoiceProps) {
  const unexpiredCount = silences.filter(({ status }) => status.state !== "expired").length;
  const lists: { name: string; label: string; icon: IconName; count?: number }[] = [
    { name: "alerts", label: "Alerts", icon: "bell", count: listed.length },
    { name: "rules", label: "Rules", icon: "table", count: groups.flatMap((g) => g.rules).length },
    {
      name: "slos",
      label: "SLOs",
      icon: "check",
      count: groups.filter((g) => g.rules.some(({ name }) => name === TARGET)).length,
    },
    { name: "silences", label: "Silences", icon: "mute", count: unexpiredCount },
    { name: "receivers", label: "Receivers", icon: "flag" },
  ];
  return (
    <div class="choices alerts-places" role="group" aria-label="Lists">
      {lists.map(({ name, label, icon, count }) => (
        <button
          key={name}
          type="button"
          aria-pressed={shownList.value === name}
          onClick={() =>
            setParams({ show: name === "alerts" ? undefined : name, state: undefined })
          }
        >
          <Icon name={icon} />
          {label}
          {count !== undefined && <span class="muted num">{countText(count)}</span>}
        </button>
      ))}
    </div>
  );
}
