/** The caller: rights, password, second factor. */
import type { ComponentChildren } from "preact";
import { useSignal } from "@preact/signals";
import { loadCaller } from "../api/client";
import { useResource } from "../api/resource";
import { caller } from "../api/session";
import type { CallerAnswer } from "../api/types";
import { forgetKey, logOut } from "../app/account";
import { momentText } from "../app/moment";
import { useAttempt } from "../parts/attempt";
import { Callout } from "../parts/callout";
import { ErrorLine } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { Page } from "../parts/page";
import { Empty } from "../parts/states";
import { roleTexts } from "./access/roles";
import { PasswordDialog } from "./profile/password-dialog";
import { Sessions } from "./profile/sessions";
import { RemoveTotpDialog, TotpDialog } from "./profile/totp-dialog";
import "../styles/tiles.css";
import "../styles/dialog.css";
import "./profile/profile.css";

export function Profile() {
  const { error, reload } = useResource("caller", loadCaller).value;
  return (
    <Page title="Profile" what="the profile" answer={{ data: caller.value, error, reload }}>
      {(me) =>
        me.kind === "none" ? (
          <section class="card">
            <Empty title="Access control is off">
              <p>Everyone who reaches this daemon may do everything, so nobody logs in.</p>
            </Empty>
          </section>
        ) : (
          <>
            {me.totp_required && (
              <Callout tone="warn" label="Required" title="Turn on the second factor">
                <p>Your role needs it. Until then, you cannot use the other views.</p>
              </Callout>
            )}
            <Identity me={me} />
            {me.kind === "user" && <Credentials me={me} />}
            {me.kind === "user" && <Sessions />}
          </>
        )
      }
    </Page>
  );
}

const KINDS = { user: "User", key: "Key", client: "Client certificate", none: "" } as const;

function Identity({ me }: { me: CallerAnswer }) {
  const { busy, error, run } = useAttempt();
  const roles = roleTexts(me.roles);
  return (
    <section class="card section" aria-labelledby="identity-title">
      <div class="card-head">
        <h2 id="identity-title">{me.display_name || me.name}</h2>
        {me.kind === "user" && (
          <button
            type="button"
            class="button"
            disabled={busy.value}
            onClick={() => void run(logOut)}
          >
            <Icon name="leave" /> Log out
          </button>
        )}
        {me.kind === "key" && (
          <button type="button" class="button" onClick={forgetKey}>
            <Icon name="close" /> Forget key
          </button>
        )}
      </div>
      <dl class="profile-facts">
        <Fact name={roles.length > 0 ? "Roles" : "Kind"}>
          {roles.length > 0 ? roles.join(", ") : KINDS[me.kind]}
        </Fact>
        <Fact name="Scopes">{me.scopes.join(", ") || "none"}</Fact>
        {me.expires !== null && (
          <Fact name={me.kind === "user" ? "Logged in until" : "Expires"}>
            {momentText(me.expires)}
          </Fact>
        )}
      </dl>
      <ErrorLine message={error.value} />
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The caller's ways to log in: a provider, a password, a second factor. */
function Credentials({ me }: { me: CallerAnswer }) {
  const open = useSignal<"password" | "totp" | "no totp" | undefined>(undefined);
  const close = () => (open.value = undefined);
  if (!me.password) {
    return (
      <section class="card section">
        <p class="nothing">You log in at your provider, which has your password.</p>
      </section>
    );
  }
  return (
    <section class="card section" aria-labelledby="credentials-title">
      <div class="card-head">
        <h2 id="credentials-title">Login</h2>
      </div>
      <ul class="profile-rows">
        <li>
          <div>
            <h3>Password</h3>
            <p class="muted">A new password ends your sessions in other browsers.</p>
          </div>
          <button type="button" class="button" onClick={() => (open.value = "password")}>
            Change password
          </button>
        </li>
        <li>
          <div>
            <h3>
              Second factor{" "}
              <span class="badge">
                <span class={me.totp ? "dot good" : "dot muted"} aria-hidden="true" />
                {me.totp ? "On" : "Off"}
              </span>
            </h3>
            <p class="muted">A code of an authenticator app, in addition to the password.</p>
          </div>
          <button
            type="button"
            class="button"
            onClick={() => (open.value = me.totp ? "no totp" : "totp")}
          >
            {me.totp ? "Turn off" : "Turn on"}
          </button>
        </li>
      </ul>
      {open.value === "password" && <PasswordDialog user={me.name} onClose={close} />}
      {open.value === "totp" && <TotpDialog user={me.name} onClose={close} />}
      {open.value === "no totp" && <RemoveTotpDialog onClose={close} />}
    </section>
  );
}
