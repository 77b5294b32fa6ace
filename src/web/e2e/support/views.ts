/** The views that tests visit, some in several states, and the viewport sizes of the tests. */
import { HOST } from "./data";

export const SIZES = [
  { width: 1440, height: 900 },
  { width: 390, height: 844 },
] as const;

export const VIEWS: { name: string; path: string; linkText?: string }[] = [
  { name: "fleet", path: "/", linkText: "Fleet" },
  { name: "host", path: `/hosts/${HOST}` },
  { name: "explore", path: "/explore", linkText: "Explore" },
  { name: "explore with a metric", path: "/explore?metric=system_load_1m&range=6h" },
  { name: "moved", path: `/moved?tags=host=${HOST}&range=1h` },
  { name: "dashboards", path: "/dashboards", linkText: "Dashboards" },
  { name: "dashboard", path: "/dashboards/hosts" },
  { name: "dashboard in edit mode", path: "/dashboards/hosts?edit=1" },
  { name: "alerts", path: "/alerts", linkText: "Alerts" },
  { name: "rules", path: "/alerts?show=rules" },
  { name: "rule", path: "/alerts?rule=hosts/LoadHigh" },
  { name: "slos", path: "/alerts?show=slos" },
  { name: "slo", path: "/alerts?show=slos&slo=load" },
  { name: "silences", path: "/alerts?show=silences" },
  { name: "receivers", path: "/alerts?show=receivers" },
  { name: "new rules", path: "/alerts/rules" },
  { name: "receivers in edit mode", path: "/alerts/receivers" },
  { name: "storage", path: "/storage", linkText: "Storage" },
  { name: "status", path: "/status", linkText: "Status" },
  { name: "access", path: "/access", linkText: "Access" },
  { name: "codes", path: "/access?show=codes" },
  { name: "users", path: "/access?show=users" },
  { name: "audit", path: "/access?show=audit" },
  { name: "profile", path: "/profile" },
];
