/** The view of each path, loaded when first opened. */
import { lazy, type Lazy } from "../parts/lazy";

/** The view that is shown in place of another one while the daemon asks for a login. */
export const loginView = lazy(async () => (await import("../views/login")).Login);

/** The view that is shown in place of another one until the caller has a second factor. */
export const profileView = lazy(async () => (await import("../views/profile")).Profile);

const views: [RegExp, Lazy][] = [
  [/^\/$/, lazy(async () => (await import("../views/fleet")).Fleet)],
  [/^\/hosts\/[^/]+$/, lazy(async () => (await import("../views/host")).HostView)],
  [/^\/explore$/, lazy(async () => (await import("../views/explore")).Explore)],
  [/^\/moved$/, lazy(async () => (await import("../views/moved")).Moved)],
  [/^\/dashboards$/, lazy(async () => (await import("../views/dashboards")).Dashboards)],
  [/^\/dashboards\/[^/]+$/, lazy(async () => (await import("../views/dashboard")).DashboardView)],
  [/^\/alerts$/, lazy(async () => (await import("../views/alerts")).Alerts)],
  [
    /^\/alerts\/(receivers|rules(\/[^/]+)?)$/,
    lazy(async () => (await import("../views/alert-file")).AlertFileView),
  ],
  [/^\/storage$/, lazy(async () => (await import("../views/storage")).Storage)],
  [/^\/status$/, lazy(async () => (await import("../views/status")).Status)],
  [/^\/access$/, lazy(async () => (await import("../views/access")).Access)],
  [/^\/profile$/, profileView],
  [/^\/login$/, loginView],
];

const notFound = lazy(async () => (await import("../views/not-found")).NotFound);

export function viewOf(path: string): Lazy {
  return views.find(([pattern]) => pattern.test(path))?.[1] ?? notFound;
}
