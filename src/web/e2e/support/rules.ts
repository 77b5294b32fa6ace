/** Rules that each daemon of the tests evaluates: firing, pending and failing. */
import { HOST } from "./data";

const lastValue = (metric: string) => `last_over_time(${metric}{host="${HOST}"}[3h])`;

const counted = `count_over_time(system_load_1m{host="${HOST}"}[$window])`;

export const RULES = `slos:
- name: load
  target: 99.9
  interval: 1s
  good: ${counted}
  total: ${counted}
groups:
- name: hosts
  interval: 1s
  rules:
  - record: host:load:last
    expr: ${lastValue("system_load_1m")}
  - alert: LoadHigh
    expr: ${lastValue("system_load_1m")} > 0.2
    labels: {severity: warning}
    annotations: {summary: "Load of {{ $labels.host }} is {{ $value }}"}
  - alert: MemoryShort
    expr: ${lastValue("system_memory_used")} > 1000
    for: 10h
    labels: {severity: critical}
  - alert: Quiet
    expr: system_load_1m < 0
- name: failing
  interval: 1s
  rules:
  - alert: Impossible
    expr: last_over_time(system_memory_used[3h]) * on (none) last_over_time(system_memory_total[3h]) < 0
`;
