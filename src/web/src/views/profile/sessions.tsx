/** The sessions of the caller, which the caller ends one by one or all at once. */
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import type { SessionEntry } from "../../api/types";
import { logOutEverywhere } from "../../app/account";
import { momentText } from "../../app/moment";
import { Ago } from "../../parts/ago";
import { useAttempt } from "../../parts/attempt";
import { ErrorLine } from "../../parts/dialog";
import { Icon } from "../../parts/icon";
import { Failed, Loading } from "../../parts/states";

const REFRESH_MS = 30_000;

export function Sessions() {
  const sessions = useResource("sessions", (signal) => api.sessions(signal), {
    everyMs: REFRESH_MS,
  });
  const { data, error, reload } = sessions.value;
  const attempt = useAttempt();
  const end = ({ id }: SessionEntry) =>
    void attempt.run(async () => {
      await api.endSession(id);
      reload();
    });
  return (
    <section class="card section" aria-labelledby="sessions-title">
      <div class="card-head">
        <h2 id="sessions-title">Sessions</h2>
        <button
          type="button"
          class="button"
          disabled={attempt.busy.value}
          onClick={() => void attempt.run(logOutEverywhere)}
        >
          <Icon name="leave" /> Log out everywhere
        </button>
      </div>
      {data ? (
        <ul class="profile-rows">
          {data.sessions.map((session) => (
            <Session
              key={session.id}
              session={session}
              isBusy={attempt.busy.value}
              onEnd={() => end(session)}
            />
          ))}
        </ul>
      ) : error ? (
        <Failed message={`Cannot load the sessions: ${error.message}`} onRetry={reload} />
      ) : (
        <Loading what="sessions" />
      )}
      <ErrorLine message={attempt.error.value} />
    </section>
  );
}

interface Props {
  session: SessionEntry;
  isBusy: boolean;
  onEnd: () => void;
}

function Session({ session: { created, used, address, is_current }, isBusy, onEnd }: Props) {
  const since = momentText(created);
  return (
    <li>
      <div>
        <h3>
          <span class="mono">{address ?? "Unknown address"}</span>
          {is_current && <span class="badge">This browser</span>}
        </h3>
        <p class="muted">
          Logged in {since}, last used{" "}
          <span title={momentText(used)}>
            <Ago at={used} />
          </span>
        </p>
      </div>
      {!is_current && (
        <button
          type="button"
          class="button"
          disabled={isBusy}
          aria-label={`End the session of ${since}`}
          onClick={onEnd}
        >
          End
        </button>
      )}
    </li>
  );
}
