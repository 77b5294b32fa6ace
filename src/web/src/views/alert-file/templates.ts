/** The first text of a person who has none: a rule, a receiver. */

export const RULES_TEMPLATE = `groups:
- name: hosts
  rules:
  - alert: LoadHigh
    expr: system_load_5m > 8
    for: 5m
    labels:
      severity: warning
    annotations:
      summary: "The load of {{ $labels.host }} is {{ $value }}"
`;

export const RECEIVERS_TEMPLATE = `route:
  receiver: team
  group_by: [alertname]
receivers:
- name: team
  webhook_configs:
  - url: https://example.com/alerts
`;
