/** An edit of a text: the text in the box, the version below it, and what saving found. */
import { useComputed, useSignal, type ReadonlySignal, type Signal } from "@preact/signals";
import { now } from "../../api/client";
import { unsavedWork, useUnsavedWarning } from "../../app/guard";
import { isSlug } from "../../model/slug";
import { useAttempt, type Attempt } from "../../parts/attempt";
import { useCheck, type Check } from "./check";
import {
  faultsIn,
  isConflict,
  isMissing,
  storedText,
  type StoredText,
  type TextKind,
} from "./kinds";

export interface Edit extends Pick<Attempt, "busy" | "error"> {
  text: Signal<string>;
  /** The stored text that the edit began with; `undefined` for a new text. */
  base: Signal<StoredText | undefined>;
  isChanged: ReadonlySignal<boolean>;
  check: Check;
  /** The text that another person saved, or `undefined` in it after a deletion. */
  conflict: Signal<{ theirs: StoredText | undefined } | undefined>;
  /** Saves over a version; resolves to true if the text was saved. */
  save: (over: number | null) => Promise<boolean>;
  /** Deletes the stored text; resolves to false when a conflict is shown instead. */
  remove: () => Promise<boolean>;
  /** Puts the text of another person into the box. */
  load: (theirs: StoredText) => void;
  /** Changes the text in the box. */
  type: (text: string) => void;
}

/** The name of a new text in checks, until it has a name. */
const UNNAMED = "new";

interface Options {
  kind: TextKind;
  name: string;
  stored: StoredText | undefined;
  /** A note about the last save, until the text changes. */
  note: Signal<string | undefined>;
}

export function useEdit({ kind, name, stored, note }: Options): Edit {
  const text = useSignal(stored?.text ?? kind.template);
  const base = useSignal(stored);
  const conflict = useSignal<Edit["conflict"]["value"]>(undefined);
  const isChanged = useComputed(() => text.value !== (base.value?.text ?? kind.template));
  const check = useCheck(kind, isSlug(name) ? name : UNNAMED, text.value);
  const { busy, error, run } = useAttempt();
  useUnsavedWarning(isChanged.value ? `Changes of these ${kind.what} are not saved.` : undefined);

  const showConflict = async () => (conflict.value = { theirs: await storedText(kind, name) });
  const saveOver = async (over: number | null): Promise<boolean> => {
    const sent = text.value;
    try {
      const saved = await kind.save(name, over, sent);
      const { version, counts } = saved;
      base.value = { name, version, counts, changed: now(), text: sent };
      conflict.value = undefined;
      // The view may be left at once.
      if (text.value === sent) unsavedWork.value = undefined;
      note.value = `Saved, in effect now: ${saved.counts}`;
      return true;
    } catch (cause) {
      const faults = faultsIn(cause);
      const isTaken = isConflict(cause) && kind.isNamed && !base.value;
      if (isTaken) throw new Error(`There are rules called ${name} already: choose another name.`);
      if (isConflict(cause)) await showConflict();
      else if (faults) check.result.value = { faults, counts: "" };
      else throw cause;
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
      if (base.value) await kind.remove(name, base.value.version);
    } catch (cause) {
      if (isConflict(cause)) {
        await showConflict();
        return false;
      }
      if (!isMissing(cause)) throw cause;
    }
    // There is nothing left to ask about.
    unsavedWork.value = undefined;
    return true;
  };
  const load = (theirs: StoredText) => {
    base.value = theirs;
    text.value = theirs.text;
    conflict.value = note.value = undefined;
  };
  const type = (next: string) => {
    text.value = next;
    note.value = undefined;
  };
  return { text, base, isChanged, check, conflict, busy, error, save, remove, load, type };
}
