/** The editor of a text: a box with line numbers, the faults of the text, and how it is saved. */
import { useSignal, type Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { navigate } from "../../app/address";
import { isSlug, NO_SLUG } from "../../model/slug";
import { ErrorLine, TextField } from "../../parts/dialog";
import type { Check } from "./check";
import { Conflict } from "./conflict";
import { DeleteDialog } from "./delete-dialog";
import { useEdit } from "./edit";
import { Faults, type PlacedFault } from "./faults";
import { Head } from "./head";
import type { StoredText, TextKind } from "./kinds";
import { LinedText, type Jump } from "./lined-text";
import { lineOfFault, lineOfRule } from "./locate";
import { Status } from "./status";

/** The ID of the form, for its button in the head. */
const FORM = "alert-text-editor";

interface Props {
  kind: TextKind;
  /** The stored text; `undefined` for a new one. */
  stored: StoredText | undefined;
  /** The rule that is shown first. */
  rule: { group: string; name: string } | undefined;
  /** A note about the last save, which outlives this editor. */
  note: Signal<string | undefined>;
}

export function Editing({ kind, stored, rule, note }: Props) {
  const typedName = useSignal("");
  const name = stored?.name ?? typedName.value.trim();
  const edit = useEdit({ kind, name, stored, note });
  const { text, base, check, conflict, busy, error } = edit;
  const jump = useSignal<Jump | undefined>(useMemo(() => jumpTo(text.peek(), rule), []));
  const isDeleting = useSignal(false);
  const faults = useMemo(() => placedFaults(text.value, check), [text.value, check.result.value]);
  const needsName = kind.isNamed && !stored;
  const canSave =
    faults.length === 0 && !busy.value && (base.value === undefined || edit.isChanged.value);
  const save = async (over: number | null) => {
    if (needsName && !isSlug(name)) {
      error.value = name === "" ? "Enter a name." : NO_SLUG;
      return;
    }
    const isSaved = await edit.save(over);
    if (isSaved && needsName) navigate(`/alerts/rules/${name}`, { replace: true });
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (canSave) void save(base.value?.version ?? null);
  };
  const remove = async () => {
    const isDeleted = await edit.remove();
    isDeleting.value = false;
    if (isDeleted) navigate(kind.list);
  };
  const theirs = conflict.value?.theirs;
  return (
    <>
      <Head {...{ kind, edit, canSave }} form={FORM} onDelete={() => (isDeleting.value = true)} />
      {conflict.value && (
        <Conflict
          theirs={theirs}
          version={base.value?.version ?? null}
          isBusy={busy.value}
          onLoad={() => theirs && edit.load(theirs)}
          onOverwrite={() => void save(theirs?.version ?? null)}
        />
      )}
      <form
        class="card alert-text-editor"
        id={FORM}
        noValidate
        onSubmit={submit}
        onKeyDown={(event) => {
          if (event.key === "s" && (event.ctrlKey || event.metaKey)) submit(event);
        }}
      >
        {needsName && (
          <div class="text-name">
            <TextField
              label="Name"
              isCode
              maxLength={64}
              placeholder="shop"
              value={typedName.value}
              onText={(next) => (typedName.value = next)}
            />
          </div>
        )}
        <LinedText
          label={kind.isNamed && stored ? `Text of ${stored.name}` : `Text of the ${kind.what}`}
          text={text.value}
          faulty={new Set(faults.flatMap(({ at }) => at ?? []))}
          jump={jump}
          onText={edit.type}
        />
        <footer class="text-foot">
          <ErrorLine message={error.value} />
          <Status check={check} note={note.value} />
          <Faults faults={faults} onJump={(line) => (jump.value = { line })} />
        </footer>
      </form>
      {isDeleting.value && (
        <DeleteDialog
          title={kind.isNamed ? `Delete ${name}` : `Delete the ${kind.what}`}
          effect={`${base.value?.counts ?? ""}. ${kind.effectOfDeletion}`}
          onClose={() => (isDeleting.value = false)}
          onDelete={remove}
        />
      )}
    </>
  );
}

function placedFaults(text: string, { result }: Check): PlacedFault[] {
  const faults = result.value && "faults" in result.value ? result.value.faults : [];
  return faults.map((fault) => ({ ...fault, at: lineOfFault(text, fault) }));
}

function jumpTo(text: string, rule: Props["rule"]): Jump | undefined {
  const line = rule && lineOfRule(text, rule.group, rule.name);
  return line === undefined ? undefined : { line };
}
