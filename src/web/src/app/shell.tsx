/** The frame of every view: navigation, the daemon's state, the theme. */
import { useEffect } from "preact/hooks";
import { awaySince, loadCaller, onDaemonBack, watchDaemon } from "../api/client";
import { caller, callerChanges, loginProblem, may } from "../api/session";
import type { Scope } from "../api/types";
import { Icon, type IconName } from "../parts/icon";
import { Account } from "./account";
import { address } from "./address";
import { unsavedWork } from "./guard";
import { isDark, theme, type Theme } from "./preferences";
import { ProjectChoice } from "./project";
import { loginView, profileView, viewOf } from "./views";

/** The links; a link that needs one of several scopes is hidden from callers without any. */
const VIEW_LINKS: { path: string; label: string; icon: IconName; needs?: readonly Scope[] }[] = [
  { path: "/", label: "Fleet", icon: "fleet" },
  { path: "/explore", label: "Explore", icon: "explore" },
  { path: "/dashboards", label: "Dashboards", icon: "dashboards" },
  { path: "/alerts", label: "Alerts", icon: "bell" },
  { path: "/storage", label: "Storage", icon: "storage" },
  { path: "/status", label: "Status", icon: "status" },
  { path: "/access", label: "Access", icon: "key", needs: ["admin", "operate"] },
];

function isCurrent(link: string, path: string): boolean {
  if (link === "/") return path === "/" || path.startsWith("/hosts/");
  return path === link || path.startsWith(`${link}/`);
}

const NEXT_THEME: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };

function Navigation() {
  const path = address.value.path;
  return (
    <nav class="places" aria-label="Views">
      <a class="brand" href="/" aria-label="Granary, fleet">
        <Icon name="grain" />
        <span>Granary</span>
      </a>
      <ProjectChoice />
      {VIEW_LINKS.filter(({ needs }) => !needs || needs.some((scope) => may(scope) !== false)).map(
        (link) => (
          <a
            key={link.path}
            href={link.path}
            class="place"
            aria-current={isCurrent(link.path, path) ? "page" : undefined}
          >
            <Icon name={link.icon} />
            <span>{link.label}</span>
          </a>
        ),
      )}
      <Account />
      <button
        type="button"
        class="place theme"
        aria-label={`Theme: ${theme.value}. Change theme`}
        title={`Theme: ${theme.value}`}
        onClick={() => (theme.value = NEXT_THEME[theme.value])}
      >
        <Icon name={isDark.value ? "moon" : "sun"} />
        <span>Theme: {theme.value}</span>
      </button>
    </nav>
  );
}

/** The banner shown while the daemon is away. */
function AwayBanner() {
  const since = awaySince.value;
  useEffect(watchDaemon, []);
  if (since === null) return null;
  const sinceText = new Date(since).toLocaleTimeString();
  return (
    <div class="away" role="alert">
      <Icon name="warning" />
      The daemon has not answered since {sinceText}. The page shows older data and reconnects
      automatically.
    </div>
  );
}

/**
 * The view of the address, or the login. A view with unsaved work stays behind the login, and
 * continues when the same caller logs in again.
 */
function Main() {
  const { Component: View } = caller.value?.totp_required
    ? profileView
    : viewOf(address.value.path);
  const needsLogin = loginProblem.value !== null && View !== loginView.Component;
  const isKept = needsLogin && unsavedWork.value !== undefined;
  return (
    <main id="view" tabIndex={-1}>
      {needsLogin && <loginView.Component />}
      {(isKept || !needsLogin) && (
        <div key={callerChanges.value} hidden={isKept} inert={isKept}>
          <View />
        </div>
      )}
    </main>
  );
}

export function Shell() {
  useEffect(() => {
    const load = () => void loadCaller().catch(() => undefined);
    load();
    return onDaemonBack(load);
  }, []);
  return (
    <div class="shell">
      <a class="skip" href="#view">
        Skip to content
      </a>
      <Navigation />
      <div class="stage">
        <AwayBanner />
        <Main />
      </div>
    </div>
  );
}
