import { expect, it } from "vitest";
import type { KeyEntry } from "../../api/types";
import { DAY } from "../../model/zone";
import { keysBy, keysMatching, keyState } from "./key-list";

const NOW = Date.UTC(2026, 10, 26);

function key(name: string, changes: Partial<KeyEntry> = {}): KeyEntry {
  return {
    id: `id${name}`,
    name,
    scopes: ["read"],
    senders: null,
    created: NOW - 30 * DAY,
    created_by: "",
    expires: null,
    one_sender: false,
    life_ms: null,
    overlap_until: null,
    used: null,
    ...changes,
  };
}

it("marks a key that expired, that expires within a week, or that is being rotated", () => {
  const labelOf = (changes: Partial<KeyEntry>) => keyState(key("a", changes), NOW).label;
  expect(labelOf({})).toBe("Valid");
  expect(labelOf({ expires: NOW + 8 * DAY })).toBe("Valid");
  expect(labelOf({ expires: NOW + 6 * DAY })).toBe("Expires soon");
  expect(labelOf({ expires: NOW })).toBe("Expired");
  expect(labelOf({ expires: NOW, overlap_until: NOW + DAY })).toBe("Expired");
  expect(labelOf({ overlap_until: NOW + 1 })).toBe("Rotating");
  expect(labelOf({ overlap_until: NOW })).toBe("Valid");
});

it("sorts unused keys and keys without an end as the reader needs them", () => {
  const keys = [
    key("b", { used: NOW, expires: NOW + DAY, created: NOW }),
    key("c", { used: NOW - DAY }),
    key("a"),
  ];
  const names = (column: Parameters<typeof keysBy>[1]) =>
    keysBy(keys, column).map(({ name }) => name);
  expect(names("name")).toEqual(["a", "b", "c"]);
  expect(names("created")).toEqual(["b", "a", "c"]);
  expect(names("expires")).toEqual(["b", "a", "c"]);
  expect(names("used")).toEqual(["a", "c", "b"]);
});

it("finds keys by all words, in names, ids, scopes and senders", () => {
  const keys = [key("web agents", { scopes: ["ingest"], senders: "web1" }), key("grafana")];
  const names = (text: string) => keysMatching(keys, text).map(({ name }) => name);
  expect(names("")).toEqual(["web agents", "grafana"]);
  expect(names("INGEST web")).toEqual(["web agents"]);
  expect(names("web read")).toEqual([]);
  expect(names("idgrafana")).toEqual(["grafana"]);
});
