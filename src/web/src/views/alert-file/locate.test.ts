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
const fault = (location: string) => ({ location, problem: "wrong", line: null });
const lineOf = (text: string) => TEXT.split("\n").findIndex((line) => line.includes(text)) + 1;

describe("a fault", () => {
  const RECEIVERS = 'route: {receiver: duty}\nreceivers:\n- name: "duty"\n- name: mail\n';

  it("has the line that the daemon reports", () => {
    expect(lineOfFault(TEXT, { ...fault('group "hosts"'), line: 3 })).toBe(3);
  });

  it("has the line of its receiver", () => {
    expect(lineOfFault(RECEIVERS, fault('receiver "duty", webhook_configs[0]'))).toBe(3);
    expect(lineOfFault(RECEIVERS, fault('receiver "mail", email/0: text'))).toBe(4);
  });

  it("has no line when it concerns the whole text or is not found", () => {
    expect(lineOfFault(TEXT, fault(""))).toBeUndefined();
    expect(lineOfFault(RECEIVERS, fault('receiver "none"'))).toBeUndefined();
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
