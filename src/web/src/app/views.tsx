/** The view of each path, loaded when first opened. */
import { lazy, type Lazy } from "../parts/lazy";

const views: [RegExp, Lazy][] = [
  [/^\/$/, lazy(async () => (await import("../views/fleet")).Fleet)],
  [/^\/hosts\/[^/]+$/, lazy(async () => (await import("../views/host")).HostView)],
  [/^\/explore$/, lazy(async () => (await import("../views/explore")).Explore)],
  [/^\/dashboards$/, lazy(async () => (await import("../views/dashboards")).Dashboards)],
  [/^\/dashboards\/[^/]+$/, lazy(async () => (await import("../views/dashboard")).DashboardView)],
  [/^\/alerts$/, lazy(async () => (await import("../views/alerts")).Alerts)],
  [/^\/storage$/, lazy(async () => (await import("../views/storage")).Storage)],
  [/^\/status$/, lazy(async () => (await import("../views/status")).Status)],
  [/^\/access$/, lazy(async () => (await import("../views/access")).Access)],
];

const notFound = lazy(async () => (await import("../views/not-found")).NotFound);

export function viewOf(path: string): Lazy {
  return views.find(([pattern]) => pattern.test(path))?.[1] ?? notFound;
}
