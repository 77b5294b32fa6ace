/** The caller in the navigation: a link to the profile, and a button that logs out. */
import { api } from "../api/client";
import { keepKey, key } from "../api/key";
import { caller, loginProblem } from "../api/session";
import { Icon } from "../parts/icon";
import { address } from "./address";

/** Ends the session. The page starts again, so that no data of this person remains in it. */
export async function logOut(): Promise<void> {
  await api.logout();
  location.reload();
}

/** Forgets the key of this tab. The page starts again. */
export function forgetKey(): void {
  keepKey("");
  location.reload();
}

export function Account() {
  const kind = caller.value?.kind ?? "none";
  const name = caller.value?.display_name || caller.value?.name || "";
  const isOut = loginProblem.value !== null;
  if (key.value !== "") {
    return (
      <button
        type="button"
        class="place account"
        aria-label="Forget key"
        title="Forget key"
        onClick={forgetKey}
      >
        <Icon name="leave" />
        <span>Forget key</span>
      </button>
    );
  }
  if (isOut || kind === "none") return null;
  return (
    <div class="account">
      <a
        class="place"
        href="/profile"
        title={name}
        aria-label={`Profile of ${name}`}
        aria-current={address.value.path === "/profile" ? "page" : undefined}
      >
        <Icon name="person" />
        <span>{name}</span>
      </a>
      {kind === "user" && (
        <button
          type="button"
          class="button quiet icon-only"
          aria-label="Log out"
          title="Log out"
          onClick={() => void logOut().catch(() => undefined)}
        >
          <Icon name="leave" />
        </button>
      )}
    </div>
  );
}
