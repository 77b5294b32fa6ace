/** Refused samples: reasons, counts and examples. */
import type { StatusAnswer } from "../../api/types";
import { Ago } from "../../parts/ago";
import { countText } from "../../model/words";

export function Refused({ refused }: { refused: StatusAnswer["refused"] }) {
  const refusals = [...refused].filter(({ count }) => count > 0).sort((a, b) => b.count - a.count);
  return (
    <section class="card section">
      <div class="card-head">
        <h2>Refused samples</h2>
        <span class="muted">since start, with recent examples</span>
      </div>
      {refusals.length === 0 ? (
        <p class="nothing">
          <span class="good">None.</span> Every sample was accepted or was a duplicate.
        </p>
      ) : (
        <ul class="refused">
          {refusals.map(({ protocol, reason, count, examples }) => (
            <li key={`${protocol} ${reason}`}>
              <div class="refused-head">
                <span class="num refused-count">{countText(count)}</span>
                <strong>{reason.replaceAll("_", " ")}</strong>
                <span class="badge">{protocol}</span>
              </div>
              {examples.length > 0 && (
                <ul class="examples">
                  {examples.map(({ at, text }, index) => (
                    <li key={`${at} ${index}`}>
                      <span class="muted num when">
                        <Ago at={at} />
                      </span>
                      <code>{text}</code>
                    </li>
                  ))}
                </ul>
              )}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
