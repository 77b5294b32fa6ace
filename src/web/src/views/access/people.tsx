/** The people who may log in, with actions to add, change and remove a person. */
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
import { NewPersonDialog } from "./new-person";
import { ChangePersonDialog, RemovePersonDialog } from "./person-dialogs";
import { PersonCard, PersonRow } from "./person-row";
import { roleTexts } from "./roles";

const REFRESH_MS = 30_000;
/** The number of people that are drawn at first, and added by each click. */
const PART = 100;
const COLUMNS = ["Name", "Roles", "Login", "Last login", "Added", "Actions"];

type Open = { dialog: "new" } | { dialog: "change" | "remove"; person: UserEntry };

const textParam = param("q");

export function People() {
  const users = useResource("users", (signal) => api.users(signal), { everyMs: REFRESH_MS });
  const open = useSignal<Open | undefined>(undefined);
  const { data, error, reload } = users.value;
  const close = () => (open.value = undefined);
  return (
    <>
      {data?.access === false && <AccessIsOff />}
      <section class="card section" aria-labelledby="people-title">
        <div class="card-head">
          <h2 id="people-title">People</h2>
          {data && (
            <span class="muted num">
              {data.users.length === 1 ? "1 person" : `${data.users.length} people`}
            </span>
          )}
          <Search
            label="Search people"
            placeholder="Search people"
            param="q"
            text={textParam.value}
          />
          <button
            type="button"
            class="button primary"
            onClick={() => (open.value = { dialog: "new" })}
          >
            <Icon name="plus" /> New person
          </button>
        </div>
        {data ? (
          <PersonList people={data.users} onOpen={(next) => (open.value = next)} />
        ) : error ? (
          <Failed message={`Cannot load the people: ${error.message}`} onRetry={reload} />
        ) : (
          <Loading what="people" />
        )}
      </section>
      {open.value?.dialog === "new" && <NewPersonDialog onClose={close} onAdded={reload} />}
      {open.value?.dialog === "change" && (
        <ChangePersonDialog person={open.value.person} onClose={close} onDone={reload} />
      )}
      {open.value?.dialog === "remove" && (
        <RemovePersonDialog person={open.value.person} onClose={close} onDone={reload} />
      )}
    </>
  );
}

function matching(people: readonly UserEntry[], text: string): UserEntry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return people.filter(({ name, roles }) => {
    const searched = [name, ...roleTexts(roles)].join(" ").toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}

function PersonList(props: { people: UserEntry[]; onOpen: (open: Open) => void }) {
  const { people, onOpen } = props;
  const limit = useSignal(PART);
  const listed = matching(people, textParam.value);
  const shown = listed.slice(0, limit.value);
  if (people.length === 0) {
    return (
      <Empty title="No people yet">
        <p>People log in with a name and a password; programs use keys.</p>
      </Empty>
    );
  }
  if (shown.length === 0) return <p class="nothing">Nobody matches “{textParam.value}”.</p>;
  const open = (person: UserEntry) => (dialog: "change" | "remove") => onOpen({ dialog, person });
  return (
    <>
      {narrow.value ? (
        <ul class="access-cards">
          {shown.map((person) => (
            <PersonCard key={person.name} person={person} onDo={open(person)} />
          ))}
        </ul>
      ) : (
        <Table label="People" class="access-table" columns={COLUMNS}>
          {shown.map((person) => (
            <PersonRow key={person.name} person={person} onDo={open(person)} />
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
