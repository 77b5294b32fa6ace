/** A dialog that makes a key. */
import { untracked, useSignal, type Signal } from "@preact/signals";
import { api, now } from "../../api/client";
import { includedBy } from "../../api/session";
import type { KeyWithToken } from "../../api/types";
import { zoneShown } from "../../app/moment";
import { zoneName } from "../../model/zone";
import { useAttempt } from "../../parts/attempt";
import { FormDialog, TextField } from "../../parts/dialog";
import { EMPTY_KEY, EXPIRIES, keyFault, keyOf, SCOPES, type KeyDraft } from "./key-draft";

interface Props {
  onClose: () => void;
  onMade: (shown: KeyWithToken) => void;
}

const NAME_MAX = 100;
const SENDERS_MAX = 128;

export function NewKeyDialog({ onClose, onMade }: Props) {
  const draft = useSignal(EMPTY_KEY);
  const { busy, error, run } = useAttempt();
  const zone = untracked(zoneShown);
  const change = (changes: Partial<KeyDraft>) => (draft.value = { ...draft.value, ...changes });
  const make = () => {
    error.value = keyFault(draft.value, zone, now());
    if (error.value !== undefined) return;
    void run(async () => onMade(await api.addKey(keyOf(draft.value, zone, now()))));
  };
  const isAdmin = draft.value.scopes.includes("admin");
  return (
    <FormDialog
      title="New key"
      action="Make key"
      isReady={!busy.value}
      error={error.value}
      onSubmit={make}
      onClose={onClose}
    >
      <TextField
        label="Name"
        isFirst
        maxLength={NAME_MAX}
        placeholder="web1"
        hint="A name for people, which no other key has"
        value={draft.value.name}
        onText={(name) => change({ name })}
      />
      <Scopes draft={draft} />
      {!isAdmin && (
        <TextField
          label="Senders"
          isCode
          maxLength={SENDERS_MAX}
          placeholder="all"
          hint="Limits the key to agents and hosts whose names begin with this text"
          value={draft.value.senders}
          onText={(senders) => change({ senders })}
        />
      )}
      <Expiry draft={draft} zone={zone} />
    </FormDialog>
  );
}

function Scopes({ draft }: { draft: Signal<KeyDraft> }) {
  const { scopes } = draft.value;
  return (
    <fieldset class="scope-choice">
      <legend>Scopes</legend>
      {SCOPES.map(({ scope, allows }) => {
        const isIncluded = includedBy(scope, scopes) !== undefined;
        const others = scopes.filter((other) => other !== scope);
        return (
          <label key={scope} class="checked">
            <input
              type="checkbox"
              checked={isIncluded || scopes.includes(scope)}
              disabled={isIncluded}
              onChange={({ currentTarget: { checked } }) =>
                (draft.value = { ...draft.value, scopes: checked ? [...others, scope] : others })
              }
            />
            <span>
              <strong>{scope}</strong> <span class="muted">{allows}</span>
            </span>
          </label>
        );
      })}
    </fieldset>
  );
}

function Expiry({ draft, zone }: { draft: Signal<KeyDraft>; zone: string }) {
  const { expiry, at } = draft.value;
  return (
    <div class="side-by-side">
      <label class="labelled">
        Expires
        <select
          value={expiry}
          onChange={(event) =>
            (draft.value = { ...draft.value, expiry: event.currentTarget.value })
          }
        >
          {EXPIRIES.map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {expiry === "at" && (
        <label class="labelled">
          <span>
            Time <small>({zoneName(zone, now())})</small>
          </span>
          <input
            type="datetime-local"
            value={at}
            onInput={(event) => (draft.value = { ...draft.value, at: event.currentTarget.value })}
          />
        </label>
      )}
    </div>
  );
}
