import { expect, it } from "vitest";
import { withOffsetsInside } from "./offsets";

it("moves an offset behind an expression to its selectors", () => {
  for (const [text, expected] of [
    ["sum(m) offset 1d", "sum(m offset 1d)"],
    ["(a / b) offset 1w", "(a offset 1w / b offset 1w)"],
    ['rate(m{a="b)"}[5m]) offset $shift', 'rate(m{a="b)"}[5m] offset $shift)'],
    ["a - sum(m) by (host) offset 1h30m", "a - sum(m offset 1h30m) by (host)"],
    ["sum by (host) (rate(m[5m])) offset 1h", "sum by (host) (rate(m[5m] offset 1h))"],
    [
      'sum(a * on (x) group_left (y) {b="c"} > bool 1e3) offset -5m',
      'sum(a offset -5m * on (x) group_left (y) {b="c"} offset -5m > bool 1e3)',
    ],
    ["max_over_time(sum(m)[1h:5m]) offset 1d", "max_over_time(sum(m offset 1d)[1h:5m])"],
    ['rate(m{host=~"$host"}[$w]) offset 1d', 'rate(m{host=~"$host"}[$w] offset 1d)'],
    ["topk(5, m) offset 1d + (n) offset 2d", "topk(5, m offset 1d) + (n offset 2d)"],
    [
      'label_replace(up, "a", "$1", "b", "(.*)") offset 1h',
      'label_replace(up offset 1h, "a", "$1", "b", "(.*)")',
    ],
  ] as const)
    expect(withOffsetsInside(text), text).toBe(expected);
});

it("leaves what has no plain meaning, and PromQL, as it is", () => {
  for (const text of [
    "(time() - m) offset 1h",
    "sum(m offset 5m) offset 1h",
    "sum(m @ 5) offset 1h",
    "sum by (host) offset 1h",
    "m offset 1h",
    "rate(m[5m] offset 1h)",
    "(a)[1h:5m] offset 1h",
    'm{a=") offset 1h"}',
    'label_replace(m, "a", "(b) offset 1h", "c", "d")',
    ") offset 1h",
    "sum(m) offset x",
    "rate($metric[5m]) offset 1d",
    "sum(${metric}) offset 1d",
    "rate(${metric:raw}[5m]) offset 1d",
    'sum(node_$x{host="a"}) offset 1d',
    "topk($n, m) offset 1d",
  ])
    expect(withOffsetsInside(text), text).toBe(text);
});
