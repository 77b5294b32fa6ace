import { expect, it } from "vitest";
import { DAY } from "../../model/zone";
import { includedBy } from "../../api/session";
import { EMPTY_KEY, keyFault, keyOf, type KeyDraft } from "./key-draft";

const NOW = Date.UTC(2026, 10, 26, 12);
const DRAFT: KeyDraft = { ...EMPTY_KEY, name: " web1 ", scopes: ["ingest"] };

const faultOf = (changes: Partial<KeyDraft>) => keyFault({ ...DRAFT, ...changes }, "UTC", NOW);
const bodyOf = (changes: Partial<KeyDraft>) => keyOf({ ...DRAFT, ...changes }, "UTC", NOW);

it("names what is missing", () => {
  expect(faultOf({})).toBeUndefined();
  expect(faultOf({ name: " " })).toContain("name");
  expect(faultOf({ scopes: [] })).toContain("scope");
  expect(faultOf({ expiry: "at" })).toContain("time");
  expect(faultOf({ expiry: "at", at: "2026-11-26T12:00" })).toContain("past");
  expect(faultOf({ expiry: "at", at: "2026-11-26T12:01" })).toBeUndefined();
});

it("sends only what was chosen", () => {
  expect(bodyOf({})).toEqual({ name: "web1", scopes: ["ingest"] });
  expect(bodyOf({ senders: " web " })).toMatchObject({ senders: "web" });
  expect(bodyOf({ expiry: "30" })).toMatchObject({ expires: NOW + 30 * DAY });
  expect(bodyOf({ expiry: "at", at: "2026-11-27T12:00" })).toMatchObject({ expires: NOW + DAY });
});

it("leaves out scopes that another scope includes, and the senders of an administrator", () => {
  expect(bodyOf({ scopes: ["read", "objects", "operate"] }).scopes).toEqual(["objects", "operate"]);
  expect(bodyOf({ scopes: ["ingest", "admin"], senders: "web" })).toEqual({
    name: "web1",
    scopes: ["admin"],
  });
  expect(includedBy("read", ["admin"])).toBe("admin");
  expect(includedBy("operate", ["admin"])).toBeUndefined();
});
