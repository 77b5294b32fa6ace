/** The limits with their settings, sorted by the share that is reached. */
import type { StatusAnswer } from "../../api/types";
import { Icon } from "../../parts/icon";
import { bytesText, countText, percentText } from "../../model/words";
import { Meter } from "./meter";
import { levelOf, limitsNear, nearestFirst, shareOf } from "./shares";

function amount(value: number, name: string): string {
  return /^bytes\b/.test(name) ? bytesText(value) : countText(value);
}

export function Limits({ limits }: { limits: StatusAnswer["limits"] }) {
  const near = limitsNear(limits);
  return (
    <section class="card section">
      <div class="card-head">
        <h2>Limits</h2>
        {near > 0 && (
          <span class="badge warn">
            <Icon name="warning" />
            {near} near
          </span>
        )}
      </div>
      <ul class="limits">
        {nearestFirst(limits).map(({ name, used, max, setting }) => {
          const share = shareOf(used, max);
          return (
            <li key={`${name} ${setting}`}>
              <span class="limit-name">{name}</span>
              <span class="num limit-used">
                {amount(used, name)} of {amount(max, name)}
              </span>
              <span class={`num limit-share ${levelOf(share)}`}>{percentText(share * 100)}</span>
              <Meter share={share} />
              {setting && <code class="muted limit-setting">{setting}</code>}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
