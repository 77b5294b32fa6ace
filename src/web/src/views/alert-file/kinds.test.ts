import { afterEach, expect, it, vi } from "vitest";
import { RECEIVERS, RULES, storedText } from "./kinds";

const FAULT = { location: "", line: null, problem: "its object is damaged" };
const entry = (name: string, changes: object) => ({
  ...{ name, origin: "page", editable: true, version: null, changed: null, faults: [] },
  ...{ groups: 0, rules: 0, receivers: 0 },
  ...changes,
});

/** Answers the list of texts, and refuses to answer single ones. */
function answerList(files: object[], notifications: object, status = 404) {
  const json = (body: unknown, code: number) =>
    new Response(JSON.stringify(body), {
      status: code,
      headers: { "content-type": "application/json" },
    });
  vi.stubGlobal("fetch", (path: string) =>
    Promise.resolve(
      path === "/api/v1/rule-files"
        ? json({ files, notifications }, 200)
        : json({ error: "failed", message: "no text" }, status),
    ),
  );
}

afterEach(() => vi.unstubAllGlobals());

it("distinguishes damaged rules from missing ones", async () => {
  const file = entry("shop", { origin: "file", editable: false });
  answerList([file, entry("rooms", { faults: [FAULT] })], entry("notifications", {}));
  expect(await RULES.load("rooms")).toEqual({ state: "damaged", faults: [FAULT] });
  expect(await RULES.load("shop")).toEqual({ state: "missing" });
  expect(await RULES.load("%")).toEqual({ state: "missing" });
  expect(await storedText(RULES, "rooms")).toBeUndefined();
});

it("reports a failure of the daemon as such", async () => {
  answerList([entry("shop", { version: 3 })], entry("notifications", {}), 500);
  await expect(RULES.load("shop")).rejects.toThrow("no text");
});

it("begins receivers with an example only when there are none", async () => {
  answerList([], entry("notifications", {}));
  expect(await RECEIVERS.load("notifications")).toEqual({ state: "new" });
  answerList([], entry("notifications", { faults: [FAULT] }));
  expect(await RECEIVERS.load("notifications")).toEqual({ state: "damaged", faults: [FAULT] });
  answerList([], entry("notifications", { editable: false, reason: "a file has them" }));
  expect(await RECEIVERS.load("notifications")).toEqual({
    state: "read-only",
    reason: "a file has them",
  });
});
