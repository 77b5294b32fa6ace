/** A user in the list: a row of the table, or a card on a narrow screen. */
import { caller } from "../../api/session";
import type { UserEntry } from "../../api/types";
import { momentText } from "../../app/moment";
import { countWithNoun } from "../../model/words";
import { Ago } from "../../parts/ago";
import { Icon } from "../../parts/icon";
import { roleTexts } from "./roles";
import { Made } from "./times";

interface Props {
  user: UserEntry;
  onDo: (what: "change" | "remove") => void;
}

export function UserRow({ user, onDo }: Props) {
  return (
    <tr>
      <th scope="row">
        <UserName user={user} />
      </th>
      <td>
        <UserRoles user={user} />
      </td>
      <td>{factorText(user)}</td>
      <td>
        <LastLogin user={user} />
      </td>
      <td>
        <Made entry={user} />
      </td>
      <td>
        <Actions user={user} onDo={onDo} />
      </td>
    </tr>
  );
}

export function UserCard({ user, onDo }: Props) {
  return (
    <li class="access-card">
      <UserName user={user} />
      <UserRoles user={user} />
      <dl class="access-facts">
        <div>
          <dt>Login</dt>
          <dd>{factorText(user)}</dd>
        </div>
        <div>
          <dt>Last login</dt>
          <dd>
            <LastLogin user={user} />
          </dd>
        </div>
        <div>
          <dt>Added</dt>
          <dd>
            <Made entry={user} />
          </dd>
        </div>
      </dl>
      <Actions user={user} onDo={onDo} />
    </li>
  );
}

function UserName({ user }: { user: UserEntry }) {
  const me = caller.value;
  return (
    <div class="access-name">
      <span>
        {user.name}
        {me?.kind === "user" && me.name === user.name && <span class="badge">You</span>}
        {user.disabled && (
          <span class="badge">
            <span class="dot bad" aria-hidden="true" />
            Disabled
          </span>
        )}
      </span>
      {user.display_name !== "" && <small class="muted">{user.display_name}</small>}
    </div>
  );
}

function UserRoles({ user }: { user: UserEntry }) {
  const texts = roleTexts(user.roles);
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

function LastLogin({ user: { last_login, sessions } }: { user: UserEntry }) {
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

function Actions({ user, onDo }: Props) {
  return (
    <div class="access-actions">
      <button
        type="button"
        class="button small"
        aria-label={`Change ${user.name}`}
        onClick={() => onDo("change")}
      >
        <Icon name="pencil" /> Change
      </button>
      <button
        type="button"
        class="button small"
        aria-label={`Remove ${user.name}`}
        onClick={() => onDo("remove")}
      >
        <Icon name="trash" /> Remove
      </button>
    </div>
  );
}
