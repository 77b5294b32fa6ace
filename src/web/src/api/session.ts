/** The caller of this tab, and whether the daemon asks for a login. */
import { computed, signal } from "@preact/signals";
import { followDaemon } from "./project";
import type { CallerAnswer, Scope } from "./types";

/** The caller; `undefined` until the daemon has answered. */
export const caller = signal<CallerAnswer | undefined>(undefined);

/** The reason why the daemon asks for a login; `null` while it does not ask. */
export const loginProblem = signal<string | null>(null);

/** The daemon's error codes that ask for a login. The browser handles a proxy's 401. */
const LOGIN_CODES = ["no_key", "wrong_key", "no_session"];

/** Notes an answer that asks for a login. */
export function noteRefusal(code: string, message: string): void {
  if (LOGIN_CODES.includes(code)) loginProblem.value = message;
  const known = caller.peek();
  // The setting changed after the login.
  if (code === "second_factor_required" && known?.totp_required === false) {
    caller.value = { ...known, totp_required: true };
  }
}

/** The number of times that another caller took over this tab. */
export const callerChanges = signal(0);

/** Notes the caller. */
export function noteCaller(answer: CallerAnswer): void {
  const known = caller.peek();
  if (known && (known.kind !== answer.kind || known.name !== answer.name)) callerChanges.value += 1;
  followDaemon(answer.project);
  caller.value = answer;
  loginProblem.value = null;
}

const INCLUDED: Readonly<Partial<Record<Scope, readonly Scope[]>>> = {
  objects: ["read"],
  admin: ["ingest", "read", "objects"],
};

/** The scope that includes another one, among these scopes. */
export function includedBy(scope: Scope, scopes: readonly Scope[]): Scope | undefined {
  return scopes.find((other) => INCLUDED[other]?.includes(scope));
}

/** Returns true if these scopes contain or include a scope. */
export function contains(scopes: readonly Scope[], scope: Scope): boolean {
  return scopes.includes(scope) || includedBy(scope, scopes) !== undefined;
}

/** Returns true if the caller has a scope; `undefined` until the caller is known. */
export function may(scope: Scope): boolean | undefined {
  return scopesOfCaller.value && contains(scopesOfCaller.value, scope);
}

/** The scopes that a change of receivers needs: the daemon sends requests to their addresses. */
export const RECEIVERS_SCOPES: readonly Scope[] = ["admin", "operate"];

/** Returns true if the caller can change receivers. */
export const mayEditReceivers = () => RECEIVERS_SCOPES.every((scope) => may(scope) === true);

const scopesOfCaller = computed(() => caller.value?.scopes);
