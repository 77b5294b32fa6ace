/** Which view belongs to a path. Each is loaded when it is first opened. */
import type { ComponentType } from "preact";
import { lazy } from "../parts/lazy";

const views: [RegExp, ComponentType][] = [
  [/^\/$/, lazy(async () => (await import("../views/fleet")).Fleet)],
  [/^\/hosts\/[^/]+$/, lazy(async () => (await import("../views/host")).HostView)],
  [/^\/explore$/, lazy(async () => (await import("../views/explore")).Explore)],
  [/^\/dashboards$/, lazy(async () => (await import("../views/dashboards")).Dashboards)],
  [/^\/dashboards\/[^/]+$/, lazy(async () => (await import("../views/dashboard")).DashboardView)],
  [/^\/storage$/, lazy(async () => (await import("../views/storage")).Storage)],
  [/^\/status$/, lazy(async () => (await import("../views/status")).Status)],
];

const NotThere = lazy(async () => (await import("../views/not-there")).NotThere);

export function viewOf(path: string): ComponentType {
  return views.find(([pattern]) => pattern.test(path))?.[1] ?? NotThere;
}
