/** The users who may log in, with actions to add, change and remove a user. */
import { useSignal } from "@preact/signals";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import type { UserEntry } from "../../api/types";
import { param } from "../../app/address";
import { countWithNoun } from "../../model/words";
import { Icon } from "../../parts/icon";
import { narrow } from "../../parts/narrow";
import { Search } from "../../parts/search";
import { Empty, Failed, Loading } from "../../parts/states";
import { Table } from "../../parts/table";
import { AccessIsOff } from "./access-is-off";
import { NewUserDialog } from "./new-user";
import { ChangeUserDialog, RemoveUserDialog } from "./user-dialogs";
import { UserCard, UserRow } from "./user-row";
import { roleTexts } from "./roles";

const REFRESH_MS = 30_000;
/** The number of users that are drawn at first, and added by each click. */
const PART = 100;
const COLUMNS = ["Name", "Roles", "Login", "Last login", "Added", "Actions"];

type Open = { dialog: "new" } | { dialog: "change" | "remove"; user: UserEntry };

const textParam = param("q");

export function Users() {
  const users = useResource("users", (signal) => api.users(signal), { everyMs: REFRESH_MS });
  const open = useSignal<Open | undefined>(undefined);
  const { data, error, reload } = users.value;
  const close = () => (open.value = undefined);
  return (
    <>
      {data?.access === false && <AccessIsOff />}
      <section class="card section" aria-labelledby="users-title">
        <div class="card-head">
          <h2 id="users-title">Users</h2>
          {data && (
            <span class="muted num">
              {data.users.length === 1 ? "1 user" : `${data.users.length} users`}
            </span>
          )}
          <Search
            label="Search users"
            placeholder="Search users"
            param="q"
            text={textParam.value}
          />
          <button
            type="button"
            class="button primary"
            onClick={() => (open.value = { dialog: "new" })}
          >
            <Icon name="plus" /> New user
          </button>
        </div>
        {data ? (
          <UserList users={data.users} onOpen={(next) => (open.value = next)} />
        ) : error ? (
          <Failed message={`Cannot load the users: ${error.message}`} onRetry={reload} />
        ) : (
          <Loading what="users" />
        )}
      </section>
      {open.value?.dialog === "new" && <NewUserDialog onClose={close} onAdded={reload} />}
      {open.value?.dialog === "change" && (
        <ChangeUserDialog user={open.value.user} onClose={close} onDone={reload} />
      )}
      {open.value?.dialog === "remove" && (
        <RemoveUserDialog user={open.value.user} onClose={close} onDone={reload} />
      )}
    </>
  );
}

function matching(users: readonly UserEntry[], text: string): UserEntry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return users.filter(({ name, roles }) => {
    const searched = [name, ...roleTexts(roles)].join(" ").toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}

function UserList(props: { users: UserEntry[]; onOpen: (open: Open) => void }) {
  const { users, onOpen } = props;
  const limit = useSignal(PART);
  const listed = matching(users, textParam.value);
  const shown = listed.slice(0, limit.value);
  if (users.length === 0) {
    return (
      <Empty title="No users yet">
        <p>Users log in with a name and a password; programs use keys.</p>
      </Empty>
    );
  }
  if (shown.length === 0) return <p class="nothing">No user matches “{textParam.value}”.</p>;
  const open = (user: UserEntry) => (dialog: "change" | "remove") => onOpen({ dialog, user });
  return (
    <>
      {narrow.value ? (
        <ul class="access-cards">
          {shown.map((user) => (
            <UserCard key={user.name} user={user} onDo={open(user)} />
          ))}
        </ul>
      ) : (
        <Table label="Users" class="access-table" columns={COLUMNS}>
          {shown.map((user) => (
            <UserRow key={user.name} user={user} onDo={open(user)} />
          ))}
        </Table>
      )}
      {shown.length < listed.length && (
        <div class="card-foot">
          <button type="button" class="button small" onClick={() => (limit.value += PART)}>
            Show more of {countWithNoun(listed.length, "name")}
          </button>
        </div>
      )}
    </>
  );
}
