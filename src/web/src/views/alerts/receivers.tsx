/** The daemon's receivers, each with a button that sends a test and shows its results. */
import { useSignal } from "@preact/signals";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { mayEditReceivers } from "../../api/session";
import type { TestedIntegration } from "../../api/types";
import { elapsedText } from "../../model/words";
import { useAttempt } from "../../parts/attempt";
import { ErrorLine } from "../../parts/dialog";
import { Icon } from "../../parts/icon";
import { Empty, Failed, Loading } from "../../parts/states";

const REFRESH_MS = 30_000;

export function Receivers() {
  const { data, error, reload } = useResource("receivers", (signal) => api.receivers(signal), {
    everyMs: REFRESH_MS,
  }).value;
  return (
    <section class="card section">
      <div class="card-head">
        <h2>Receivers</h2>
        {mayEditReceivers() && (
          <a class="button small receivers-edit" href="/alerts/receivers">
            <Icon name="pencil" /> Edit receivers
          </a>
        )}
      </div>
      {data === undefined ? (
        error ? (
          <Failed message={`Cannot load the receivers: ${error.message}`} onRetry={reload} />
        ) : (
          <Loading what="receivers" />
        )
      ) : data.length === 0 ? (
        <Empty title="No receivers">
          <p>
            Administrators can define receivers here, or in the file that{" "}
            <code>alerts.notifications</code> names. Alertmanagers in{" "}
            <code>alerts.alertmanagers</code> have separate receivers.
          </p>
        </Empty>
      ) : (
        <ul class="alert-rows">
          {data.map(({ name }) => (
            <Row key={name} name={name} />
          ))}
        </ul>
      )}
    </section>
  );
}

function Row({ name }: { name: string }) {
  const integrations = useSignal<TestedIntegration[] | undefined>(undefined);
  const { busy, error, run } = useAttempt();
  const sendTest = () =>
    void run(async () => {
      integrations.value = undefined;
      integrations.value = (await api.testReceiver(name)).integrations;
    });
  return (
    <li class="alert-row receiver-row">
      <div class="alert-what">
        <strong>{name}</strong>
        {busy.value && <p class="muted">Sending a test, for up to a minute…</p>}
        {error.value !== undefined && <ErrorLine message={error.value} />}
        <div role="status">
          {integrations.value?.length === 0 && (
            <p class="warn">This receiver has no integrations.</p>
          )}
          {integrations.value?.map((tested) => (
            <Integration key={tested.integration} tested={tested} />
          ))}
        </div>
      </div>
      <div class="alert-actions">
        <button
          type="button"
          class="button small"
          disabled={busy.value}
          aria-label={`Send a test to ${name}`}
          onClick={sendTest}
        >
          <Icon name="bell" /> Send a test
        </button>
      </div>
    </li>
  );
}

const OUTCOME_TEXTS = {
  sent: { word: "accepted", class: "good" },
  refused: { word: "rejected", class: "bad" },
  failed: { word: "not reached", class: "bad" },
} as const;

function Integration({ tested }: { tested: TestedIntegration }) {
  const { integration, outcome, answer, seconds } = tested;
  const { word, class: kind } = OUTCOME_TEXTS[outcome];
  return (
    <p class="receiver-integration">
      <span class={kind}>
        <Icon name={outcome === "sent" ? "check" : "warning"} /> {integration} {word}
      </span>{" "}
      <span class="muted num">after {elapsedText(seconds * 1000)}</span>
      {answer && <span class="receiver-answer">{answer}</span>}
    </p>
  );
}
