/** The login: shown in place of a view while the daemon asks for it, and at `/login`. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { caller, loginProblem } from "../api/session";
import { Empty, Loading } from "../parts/states";
import { AcceptForm } from "./login/accept-form";
import { KeyForm } from "./login/key-form";
import { PasswordForm } from "./login/password-form";
import "../styles/dialog.css";
import "./login/login.css";

/** The code of a one-time link, `/login#code=CODE`, which the address then loses. */
function takeCode(): string {
  if (location.pathname !== "/login") return "";
  const code = new URLSearchParams(location.hash.slice(1)).get("code") ?? "";
  if (code !== "") history.replaceState(null, "", location.pathname);
  return code;
}

export function Login() {
  const code = useMemo(takeCode, []);
  const isKey = useSignal(false);
  useEffect(() => {
    document.title = "Log in · Granary";
  }, []);
  if (code !== "") return <AcceptForm code={code} />;
  if (loginProblem.value === null) return <AlreadyIn />;
  return isKey.value ? (
    <KeyForm onPassword={() => (isKey.value = false)} />
  ) : (
    <PasswordForm onKey={() => (isKey.value = true)} />
  );
}

/** Shown at `/login` to callers that the daemon answers. */
function AlreadyIn() {
  if (caller.value === undefined) return <Loading />;
  const { kind, name } = caller.value;
  return (
    <Empty title={kind === "none" ? "Access control is off" : `Logged in as ${name}`}>
      <p>
        <a href="/">Open fleet</a>
      </p>
    </Empty>
  );
}
