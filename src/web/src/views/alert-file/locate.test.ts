import { describe, expect, it } from "vitest";
import { lineOfFault, lineOfRule } from "./locate";

const TEXT = `# Rules of the shop
slos:
- name: checkout
  target: 99
groups:
- name: hosts # all of them
  interval: 30s
  rules:
  # The first rule
  - record: host:load
    expr: |
      avg by (host) (
        load
      )
  - expr: load > 5
    alert: "LoadHigh"
  - alert: Down

    expr: up == 0
- name: "a \\"b\\""
  rules:
  - alert: Down
    expr: up < 1
- interval: 1m
  name: 'it''s'
  rules:
    - alert: Late
      expr: late > 1
`;
const fault = (location: string, problem = "wrong") => ({ location, problem, line: null });
const lineOf = (text: string) => TEXT.split("\n").findIndex((line) => line.includes(text)) + 1;

describe("a fault", () => {
  it("has the line of its rule, by the place of the rule", () => {
    const at = (location: string) => lineOfFault(TEXT, fault(location));
    expect(at('group "hosts", rule 1 (host:load)')).toBe(lineOf("record: host:load"));
    expect(at('group "hosts", rule 2 (LoadHigh)')).toBe(lineOf("expr: load > 5"));
    expect(at('group "hosts", rule 3 (Down)')).toBe(lineOf("alert: Down"));
    expect(at('group "a \\"b\\"", rule 1 (Down)')).toBe(lineOf("expr: up < 1") - 1);
    expect(at('group "it\'s", rule 1 (Late)')).toBe(lineOf("alert: Late"));
  });

  it("has the line of its group when the text has no such rule", () => {
    const group = lineOf("name: hosts");
    expect(lineOfFault(TEXT, fault('group "hosts"'))).toBe(group);
    expect(lineOfFault(TEXT, fault('group "hosts", rule 4 (x)'))).toBe(group);
    expect(lineOfFault(TEXT, fault('slo "checkout"'))).toBe(lineOf("name: checkout"));
  });

  it("has the line that the daemon reports", () => {
    expect(lineOfFault(TEXT, { ...fault('group "hosts"'), line: 3 })).toBe(3);
  });

  it("has no line when it concerns the whole text or is not found", () => {
    expect(lineOfFault(TEXT, fault("", "too many bytes"))).toBeUndefined();
    expect(lineOfFault(TEXT, fault('group "none", rule 1 (x)'))).toBeUndefined();
    expect(lineOfFault("", fault(""))).toBeUndefined();
  });
});

describe("a rule", () => {
  it("has the line of its name, in its group", () => {
    expect(lineOfRule(TEXT, "hosts", "LoadHigh")).toBe(lineOf("LoadHigh"));
    expect(lineOfRule(TEXT, "hosts", "Down")).toBe(lineOf("alert: Down"));
    expect(lineOfRule(TEXT, 'a "b"', "Down")).toBe(lineOf("expr: up < 1") - 1);
    expect(lineOfRule(TEXT, "it's", "Late")).toBe(lineOf("alert: Late"));
  });

  it("has the line of its group when it is made from an objective", () => {
    expect(lineOfRule(TEXT, "slo:checkout", "ErrorBudgetBurn")).toBe(lineOf("name: checkout"));
    expect(lineOfRule(TEXT, "none", "Late")).toBeUndefined();
  });
});
