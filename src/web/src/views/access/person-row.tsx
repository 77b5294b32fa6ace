/** A person in the list: a row of the table, or a card on a narrow screen. */
import { caller } from "../../api/session";
import type { UserEntry } from "../../api/types";
import { dayOfText, momentText } from "../../app/moment";
import { countWithNoun } from "../../model/words";
import { Ago } from "../../parts/ago";
import { Icon } from "../../parts/icon";
import { roleTexts } from "./roles";

interface Props {
  person: UserEntry;
  onDo: (what: "change" | "remove") => void;
}

export function PersonRow({ person, onDo }: Props) {
  return (
    <tr>
      <th scope="row">
        <PersonName person={person} />
      </th>
      <td>
        <PersonRoles person={person} />
      </td>
      <td>{factorText(person)}</td>
      <td>
        <LastLogin person={person} />
      </td>
      <td>
        <Added person={person} />
      </td>
      <td>
        <Actions person={person} onDo={onDo} />
      </td>
    </tr>
  );
}

export function PersonCard({ person, onDo }: Props) {
  return (
    <li class="access-card">
      <PersonName person={person} />
      <PersonRoles person={person} />
      <dl class="access-facts">
        <div>
          <dt>Login</dt>
          <dd>{factorText(person)}</dd>
        </div>
        <div>
          <dt>Last login</dt>
          <dd>
            <LastLogin person={person} />
          </dd>
        </div>
        <div>
          <dt>Added</dt>
          <dd>
            <Added person={person} />
          </dd>
        </div>
      </dl>
      <Actions person={person} onDo={onDo} />
    </li>
  );
}

function PersonName({ person }: { person: UserEntry }) {
  const me = caller.value;
  return (
    <div class="access-name">
      <span>
        {person.name}
        {me?.kind === "user" && me.name === person.name && <span class="badge">You</span>}
        {person.disabled && (
          <span class="badge">
            <span class="dot bad" aria-hidden="true" />
            Disabled
          </span>
        )}
      </span>
    </div>
  );
}

function PersonRoles({ person }: { person: UserEntry }) {
  const texts = roleTexts(person.roles);
  if (texts.length === 0) return <span class="muted">no roles</span>;
  return (
    <ul class="labels" aria-label="Roles">
      {texts.map((text) => (
        <li key={text} class="badge">
          {text}
        </li>
      ))}
    </ul>
  );
}

function factorText({ password, totp }: UserEntry): string {
  if (!password) return "Provider";
  return totp ? "Password and code" : "Password";
}

function LastLogin({ person: { last_login, sessions } }: { person: UserEntry }) {
  if (last_login === null) return <span class="muted">never</span>;
  return (
    <span class="access-time" title={momentText(last_login)}>
      <span>
        <Ago at={last_login} />
      </span>
      <small class="muted">{countWithNoun(sessions, "session")}</small>
    </span>
  );
}

function Added({ person: { created, created_by } }: { person: UserEntry }) {
  return (
    <span class="access-time" title={momentText(created)}>
      {dayOfText(created)}
      {created_by !== "" && <small class="muted">by {created_by}</small>}
    </span>
  );
}

function Actions({ person, onDo }: Props) {
  return (
    <div class="access-actions">
      <button
        type="button"
        class="button small"
        aria-label={`Change ${person.name}`}
        onClick={() => onDo("change")}
      >
        <Icon name="pencil" /> Change
      </button>
      <button
        type="button"
        class="button small"
        aria-label={`Remove ${person.name}`}
        onClick={() => onDo("remove")}
      >
        <Icon name="trash" /> Remove
      </button>
    </div>
  );
}
