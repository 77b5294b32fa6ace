/** A link of a panel to another dashboard, and the choice of that dashboard. */
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { address } from "../../app/address";
import type { TimeFrame } from "../../chart/frame";
import { Icon } from "../../parts/icon";
import type { ChosenValues } from "../../queries/variables";
import { linkedPath } from "./panel-link-path";

interface LinkProps {
  /** The name of the dashboard; without one, there is no link. */
  name: string | undefined;
  title: string;
  frame: TimeFrame;
  chosen: ChosenValues;
}

export function PanelLink({ name, title, frame, chosen }: LinkProps) {
  if (!name) return null;
  const { params } = address.value;
  return (
    <a
      class="button quiet icon-only"
      href={linkedPath(name, { choice: frame.choice.value, chosen, params })}
      aria-label={`${title}: open the dashboard ${name}`}
      title={`Open ${name}`}
    >
      <Icon name="link" />
    </a>
  );
}

interface ChoiceProps {
  link: string | undefined;
  onLink: (link: string | undefined) => void;
}

export function LinkChoice({ link, onLink }: ChoiceProps) {
  const { data } = useResource("dashboards", (signal) => api.dashboards(signal)).value;
  const known = data?.dashboards ?? [];
  const isUnknown = link && !known.some(({ name }) => name === link);
  return (
    <label class="labelled">
      Link
      <select
        value={link ?? ""}
        onChange={(event) => onLink(event.currentTarget.value || undefined)}
      >
        <option value="">None</option>
        {isUnknown && <option value={link}>{link}</option>}
        {known.map(({ name, title }) => (
          <option key={name} value={name}>
            {title || name}
          </option>
        ))}
      </select>
    </label>
  );
}
