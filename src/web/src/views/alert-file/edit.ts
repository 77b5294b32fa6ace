/** An edit of a text: the text in the box, the version below it, and what saving found. */
import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { now } from "../../api/client";
import { unsavedWork, useUnsavedWarning } from "../../app/guard";
import { isSlug } from "../../model/slug";
import { createAttempt, type Attempt } from "../../parts/attempt";
import { useDebouncedCheck, type CheckResult } from "../../parts/debounced-check";
import {
  faultsIn,
  isConflict,
  isMissing,
  storedText,
  type Checked,
  type StoredText,
  type TextKind,
} from "./kinds";

export interface Edit extends Pick<Attempt, "busy" | "error"> {
  text: Signal<string>;
  /** The stored text that the edit began with; `undefined` for a new text. */
  base: Signal<StoredText | undefined>;
  isChanged: ReadonlySignal<boolean>;
  checked: CheckResult<Checked>;
  /** The text that another person saved, or `undefined` in it after a deletion. */
  conflict: Signal<{ theirs: StoredText | undefined } | undefined>;
  /** The text that was in the box before the text of another person, until the next edit. */
  mine: Signal<string | undefined>;
  /** Saves over a version; resolves to true if the text was saved. */
  save: (over: number | null) => Promise<boolean>;
  /** Deletes the stored text; resolves to false when a conflict is shown instead. */
  remove: () => Promise<boolean>;
  /** Puts the text of another person into the box. */
  load: (theirs: StoredText) => void;
  /** Puts the text of before `load` into the box again. */
  restore: () => void;
  /** Changes the text in the box. */
  type: (text: string) => void;
}

/** The name of a new text in checks, until it has a name. */
const UNNAMED = "new";

interface Options {
  kind: TextKind;
  stored: StoredText | undefined;
  /** True if the person chooses the name. */
  needsName: boolean;
  /** A note about the last save, until the text changes. */
  note: Signal<string | undefined>;
}

export function useEdit(options: Options & { name: string }): Edit & { isChecking: boolean } {
  const { kind, name } = options;
  const nameOf = useRef(name);
  nameOf.current = name;
  const edit = useMemo(() => createEdit(options, () => nameOf.current), []);
  const checkedName = isSlug(name) ? name : UNNAMED;
  const text = edit.text.value;
  const isChecking = useDebouncedCheck(
    edit.checked,
    (signal) => kind.check(checkedName, text, signal),
    [kind, checkedName, text],
  );
  const isChanged = edit.isChanged.value;
  useUnsavedWarning(isChanged ? `Changes of these ${kind.what} are not saved.` : undefined);
  return { ...edit, isChecking };
}

export function createEdit(options: Options, nameOf: () => string): Edit {
  const { kind, stored, needsName, note } = options;
  const text = signal(stored?.text ?? kind.template);
  const base = signal(stored);
  const checked: Edit["checked"] = signal(undefined);
  const conflict: Edit["conflict"] = signal(undefined);
  const mine: Edit["mine"] = signal(undefined);
  const isChanged = computed(() => text.value !== (base.value?.text ?? kind.template));
  const { busy, error, run } = createAttempt();

  const showConflict = async (name: string) =>
    (conflict.value = { theirs: await storedText(kind, name) });
  const saveOver = async (over: number | null): Promise<boolean> => {
    const [name, sent] = [nameOf(), text.value];
    try {
      const { version, counts } = await kind.save(name, over, sent);
      base.value = { name, version, counts, changed: now(), text: sent };
      conflict.value = mine.value = undefined;
      // The view may be left at once.
      if (text.value === sent) unsavedWork.value = undefined;
      note.value = `Saved, in effect now: ${counts}`;
      return true;
    } catch (cause) {
      const faults = faultsIn(cause);
      const isTaken = isConflict(cause) && needsName && !base.value;
      if (isTaken) throw new Error(`There are rules called ${name} already: choose another name.`);
      if (isConflict(cause)) await showConflict(name);
      else if (!faults) throw cause;
      // The faults of an older text say nothing about the text in the box.
      else if (text.value === sent) checked.value = { faults, counts: "" };
      return false;
    }
  };
  const save = async (over: number | null) => {
    let isSaved = false;
    await run(async () => {
      isSaved = await saveOver(over);
    });
    return isSaved;
  };
  const remove = async () => {
    try {
      await kind.remove(nameOf(), base.value?.version);
    } catch (cause) {
      if (isConflict(cause)) {
        await showConflict(nameOf());
        return false;
      }
      if (!isMissing(cause)) throw cause;
    }
    // There is nothing left to ask about.
    unsavedWork.value = undefined;
    return true;
  };
  const load = (theirs: StoredText) => {
    mine.value = text.value;
    base.value = theirs;
    text.value = theirs.text;
    conflict.value = note.value = error.value = undefined;
  };
  const type = (next: string) => {
    text.value = next;
    mine.value = note.value = error.value = undefined;
  };
  const restore = () => type(mine.value ?? text.value);
  return {
    ...{ text, base, isChanged, checked, conflict, mine, busy, error },
    ...{ save, remove, load, restore, type },
  };
}
