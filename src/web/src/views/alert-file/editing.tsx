/** The editor of a text: a box with line numbers, the faults of the text, and how it is saved. */
import { useSignal, type Signal } from "@preact/signals";
import { useId, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { navigate } from "../../app/address";
import type { TextFault } from "../../api/types";
import { isSlug, NO_SLUG } from "../../model/slug";
import { Callout } from "../../parts/callout";
import { ErrorLine, TextField } from "../../parts/dialog";
import { Conflict } from "./conflict";
import { DeleteDialog } from "./delete-dialog";
import { useEdit, type Edit } from "./edit";
import { Faults, type PlacedFault } from "./faults";
import { Head } from "./head";
import type { StoredText, TextKind } from "./kinds";
import { LinedText, type Jump } from "./lined-text";
import { lineOfFault, lineOfRule } from "./locate";
import { Status } from "./status";

interface Props {
  kind: TextKind;
  /** The name in the address; `undefined` for a new text, whose name the person chooses. */
  fixedName: string | undefined;
  /** The stored text; `undefined` for a new or damaged one. */
  stored: StoredText | undefined;
  /** The faults of a stored text that cannot be read. */
  damage: readonly TextFault[];
  /** The rule that is shown first. */
  rule: { group: string; name: string } | undefined;
  /** A note about the last save, which outlives this editor. */
  note: Signal<string | undefined>;
}

export function Editing({ kind, fixedName, stored, damage, rule, note }: Props) {
  const needsName = fixedName === undefined;
  const typedName = useSignal("");
  const name = fixedName ?? typedName.value.trim();
  const edit = useEdit({ kind, name, stored, needsName, note });
  const { text, base, checked, conflict, busy, error } = edit;
  const jump = useSignal<Jump | undefined>(useMemo(() => jumpTo(text.peek(), rule), []));
  const isDeleting = useSignal(false);
  const [form, foot] = [useId(), useId()];
  const box = useRef<HTMLTextAreaElement>(null);
  const nameField = useRef<HTMLInputElement>(null);
  const focusBox = () => box.current?.focus({ preventScroll: true });
  // The first save of a new text opens another editor.
  useLayoutEffect(() => {
    if (note.peek() !== undefined) focusBox();
  }, []);
  const faults = useMemo(
    () => placedFaults(text.value, checked.value),
    [text.value, checked.value],
  );
  const isDamaged = damage.length > 0 && base.value === undefined;
  const canSave =
    faults.length === 0 && !busy.value && (base.value === undefined || edit.isChanged.value);
  const save = async (over: number | null) => {
    if (needsName && !isSlug(name)) {
      error.value = name === "" ? "Enter a name." : NO_SLUG;
      nameField.current?.focus();
      return;
    }
    const isSaved = await edit.save(over);
    if (isSaved && needsName) navigate(`/alerts/rules/${name}`, { replace: true });
    // A conflict takes the focus itself.
    else if (needsName && error.value !== undefined) nameField.current?.focus();
    else if (!conflict.value) focusBox();
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
  const typeName = (next: string) => {
    typedName.value = next;
    error.value = undefined;
  };
  return (
    <>
      <div
        onKeyDown={(event) => {
          if (event.key === "s" && (event.ctrlKey || event.metaKey)) submit(event);
        }}
      >
        <Head
          {...{ kind, edit, form, canSave, isDamaged }}
          name={fixedName}
          onDelete={() => (isDeleting.value = true)}
        />
        {isDamaged && <Damaged faults={damage} />}
        <Conflict edit={edit} onSave={(over) => void save(over)} />
        <form class="card alert-text-editor" id={form} noValidate onSubmit={submit}>
          {needsName && (
            <div class="text-name">
              <TextField
                label="Name"
                isCode
                maxLength={64}
                placeholder="shop"
                field={nameField}
                value={typedName.value}
                onText={typeName}
              />
            </div>
          )}
          <LinedText
            field={box}
            label={kind.isNamed && !needsName ? `Text of ${name}` : `Text of the ${kind.what}`}
            describedBy={foot}
            text={text.value}
            faulty={new Set(faults.flatMap(({ at }) => at ?? []))}
            jump={jump}
            onText={edit.type}
          />
          <footer class="text-foot" id={foot}>
            <ErrorLine message={error.value} />
            <Status
              checked={checked.value}
              isChecking={edit.isChecking}
              hasConflict={conflict.value !== undefined}
              note={note.value}
            />
            <Faults faults={faults} onJump={(line) => (jump.value = { line })} />
          </footer>
        </form>
      </div>
      {isDeleting.value && (
        <DeleteDialog
          title={kind.isNamed ? `Delete “${name}”?` : `Delete the ${kind.what}?`}
          effect={base.value ? `${base.value.counts}. ${kind.effectOfDeletion}` : undefined}
          onClose={() => (isDeleting.value = false)}
          onDelete={remove}
        />
      )}
    </>
  );
}

/** The notice above the text that replaces one that cannot be read. */
function Damaged({ faults }: { faults: readonly TextFault[] }) {
  return (
    <Callout tone="bad" label="Damaged text" title="The stored text cannot be read">
      {faults.map(({ problem }, k) => (
        <p key={k}>{problem}</p>
      ))}
      <p>The box contains an example. Write the text again and save it, or delete it.</p>
    </Callout>
  );
}

function placedFaults(text: string, checked: Edit["checked"]["value"]): PlacedFault[] {
  const faults = checked && "faults" in checked ? checked.faults : [];
  return faults.map((fault) => ({ ...fault, at: lineOfFault(text, fault) }));
}

function jumpTo(text: string, rule: Props["rule"]): Jump | undefined {
  const line = rule && lineOfRule(text, rule.group, rule.name);
  return line === undefined ? undefined : { line };
}
