import { signal } from "@preact/signals";
import { describe, expect, it, vi } from "vitest";
import { ApiError } from "../../api/client";
import { createEdit } from "./edit";
import type { Loaded, StoredText, TextKind } from "./kinds";
import { RULES } from "./kinds";

const FAULT = { location: "", line: 3, problem: "wrong" };
const stored = (text: string, version: number): StoredText => ({
  ...{ name: "shop", version, text },
  ...{ changed: 0, counts: "1 rule in 1 group" },
});
const refused = (status: number, code: string, body?: unknown) =>
  new ApiError(status, code, code, body);

/** An answer to a save, which the test gives. */
function delayed() {
  let resolve: (saved: { version: number; counts: string }) => void = () => undefined;
  let reject: (cause: ApiError) => void = () => undefined;
  const promise = new Promise<{ version: number; counts: string }>((onSaved, onRefused) => {
    [resolve, reject] = [onSaved, onRefused];
  });
  return { promise, resolve, reject };
}

/** An edit of `base` whose saves wait for `answer`, while the daemon has `theirs`. */
function edited(theirs: Loaded = { state: "missing" }, needsName = false) {
  const answer = delayed();
  const kind: TextKind = {
    ...RULES,
    save: vi.fn(() => answer.promise),
    remove: vi.fn(() => answer.promise),
    load: () => Promise.resolve(theirs),
  };
  const note = signal<string | undefined>(undefined);
  const base = needsName ? undefined : stored("base", 1);
  return {
    kind,
    answer,
    note,
    edit: createEdit({ kind, stored: base, needsName, note }, () => "shop"),
  };
}

describe("a save", () => {
  it("becomes the base of the next one", async () => {
    const { kind, answer, note, edit } = edited();
    edit.type("mine");
    const saving = edit.save(1);
    answer.resolve({ version: 2, counts: "2 rules in 1 group" });
    expect(await saving).toBe(true);
    expect(kind.save).toHaveBeenCalledWith("shop", 1, "mine");
    expect(edit.base.value).toMatchObject({ version: 2, text: "mine" });
    expect(edit.isChanged.value).toBe(false);
    expect(note.value).toBe("Saved, in effect now: 2 rules in 1 group");
  });

  it("shows the faults of the text that was refused", async () => {
    const { answer, edit } = edited();
    edit.type("mine");
    const saving = edit.save(1);
    answer.reject(refused(422, "invalid", { faults: [FAULT] }));
    expect(await saving).toBe(false);
    expect(edit.checked.value).toEqual({ faults: [FAULT], counts: "" });
  });

  it("keeps the check of a newer text when an older text is refused", async () => {
    const { answer, edit } = edited();
    edit.type("faulty");
    const saving = edit.save(1);
    edit.type("correct");
    edit.checked.value = { faults: [], counts: "1 rule in 1 group" };
    answer.reject(refused(422, "invalid", { faults: [FAULT] }));
    await saving;
    expect(edit.checked.value).toEqual({ faults: [], counts: "1 rule in 1 group" });
  });

  it("is still unsaved work when the text changed meanwhile", async () => {
    const { answer, edit } = edited();
    edit.type("mine");
    const saving = edit.save(1);
    edit.type("mine and more");
    answer.resolve({ version: 2, counts: "" });
    await saving;
    expect(edit.isChanged.value).toBe(true);
    expect(edit.text.value).toBe("mine and more");
  });

  it("does not replace rules of the name that a new text chooses", async () => {
    const { answer, edit } = edited({ state: "stored", stored: stored("theirs", 4) }, true);
    const saving = edit.save(null);
    answer.reject(refused(409, "conflict"));
    expect(await saving).toBe(false);
    expect(edit.error.value).toContain("There are rules called shop already");
    expect(edit.conflict.value).toBeUndefined();
    edit.type("next");
    expect(edit.error.value).toBeUndefined();
  });
});

describe("a conflict", () => {
  it("keeps both texts: theirs can be loaded, and mine comes back", async () => {
    const theirs = stored("theirs", 2);
    const { answer, edit } = edited({ state: "stored", stored: theirs });
    edit.type("mine");
    const saving = edit.save(1);
    answer.reject(refused(409, "conflict"));
    expect(await saving).toBe(false);
    expect(edit.conflict.value).toEqual({ theirs });
    expect(edit.text.value).toBe("mine");

    edit.load(theirs);
    expect(edit.conflict.value).toBeUndefined();
    expect([edit.text.value, edit.isChanged.value]).toEqual(["theirs", false]);
    edit.restore();
    expect([edit.text.value, edit.isChanged.value]).toEqual(["mine", true]);
    expect(edit.base.value).toEqual(theirs);
    expect(edit.mine.value).toBeUndefined();
  });

  it("forgets mine with the next edit of theirs", () => {
    const { edit } = edited();
    edit.type("mine");
    edit.load(stored("theirs", 2));
    expect(edit.mine.value).toBe("mine");
    edit.type("theirs, edited");
    expect(edit.mine.value).toBeUndefined();
  });

  it("reports that the text was deleted", async () => {
    const { answer, edit } = edited();
    const saving = edit.save(1);
    answer.reject(refused(409, "conflict"));
    await saving;
    expect(edit.conflict.value).toEqual({ theirs: undefined });
  });
});

it("deletes a damaged text without a version", async () => {
  const { kind, answer, note } = edited();
  const options = { kind, stored: undefined, needsName: false, note };
  const removing = createEdit(options, () => "shop").remove();
  answer.resolve({ version: 0, counts: "" });
  expect(await removing).toBe(true);
  expect(kind.remove).toHaveBeenCalledWith("shop", undefined);
});
