/** Access control: the caller, users, keys, and the audit. */

/** A permission of a key. */
export type Scope = "ingest" | "read" | "objects" | "admin" | "operate";

/** `/api/v1/access/keys` */
export interface KeysAnswer {
  /** True if the daemon requires keys. */
  access: boolean;
  keys: KeyEntry[];
}

export interface KeyEntry {
  id: string;
  name: string;
  scopes: Scope[];
  /** The project whose data the key may use; `*`: all. */
  project: string;
  /** The prefix of the senders' names that the key may use; `null`: all. */
  senders: string | null;
  /** True when `senders` is the whole name of the only sender. */
  one_sender: boolean;
  created: number;
  created_by: string;
  expires: number | null;
  /** The lifetime of each secret; `null` when the holder of the key may not renew it. */
  life_ms: number | null;
  /** The time until which the previous secret is valid, after a rotation. */
  overlap_until: number | null;
  /** The last use since the daemon started. */
  used: number | null;
}

export interface NewKey {
  name: string;
  scopes: Scope[];
  senders?: string;
  expires?: number;
}

/** A new or rotated key with the text that clients send, which is shown once. */
export interface KeyWithToken {
  key: KeyEntry;
  token: string;
}

/** `/api/v1/access/codes`: one-time codes, each for one key. */
export interface CodesAnswer {
  codes: CodeEntry[];
}

export interface CodeEntry {
  id: string;
  purpose: "enroll" | "first_admin";
  scopes: Scope[];
  project: string;
  /** The prefix of the names of agents that can use the code; `null`: all. */
  senders: string | null;
  created: number;
  created_by: string;
  expires: number;
  /** The lifetime of the key, which its agent renews. */
  key_life_ms: number | null;
}

export interface NewCode {
  senders?: string;
  valid_ms: number;
}

/** A new code with its text, which is shown once. */
export interface CodeWithText {
  code: CodeEntry;
  text: string;
}

export type Role = "viewer" | "editor" | "admin";

/** Roles by project; `*` stands for every project and the daemon itself. */
export type Roles = Record<string, Role>;

/** `/api/v1/access/me`: the caller. */
export interface CallerAnswer {
  /** True if access control is on. */
  access: boolean;
  /** The kind of credentials; `none` while access control is off. */
  kind: "user" | "key" | "client" | "none";
  name: string;
  /** The name that the provider sent; empty for other callers. */
  display_name: string;
  roles: Roles;
  /** The scopes in the project of the request. */
  scopes: Scope[];
  project: string;
  /** The projects among which the caller may choose. */
  projects: string[];
  /** True if logging in requires a code. */
  totp: boolean;
  /** True if the user must set up a second factor before anything else. */
  totp_required: boolean;
  password: boolean;
  /** The text for the header of requests for changes; `null` without a session. */
  csrf: string | null;
  /** The latest end of the session. */
  expires: number | null;
}

/** `/api/v1/access/oidc`: the provider at which people log in; `null` without one. */
export interface ProviderAnswer {
  name: string | null;
}

export interface Login {
  user: string;
  password: string;
  /** The code of an authenticator app. */
  code?: string;
}

/** A secret for authenticator apps. */
export interface TotpSecret {
  secret: string;
  uri: string;
}

/** `/api/v1/access/sessions`: the caller's own, the one that was used last first. */
export interface SessionsAnswer {
  sessions: SessionEntry[];
}

export interface SessionEntry {
  id: string;
  created: number;
  /** The last request, or the start of the daemon. */
  used: number;
  expires: number;
  /** The address of the last request since the daemon started. */
  address: string | null;
  /** True for the session of the request. */
  is_current: boolean;
}

/** `/api/v1/access/users` */
export interface UsersAnswer {
  access: boolean;
  users: UserEntry[];
}

export interface UserEntry {
  name: string;
  /** The name that the provider sent; empty for the daemon's own users. */
  display_name: string;
  roles: Roles;
  totp: boolean;
  password: boolean;
  disabled: boolean;
  created: number;
  created_by: string;
  last_login: number | null;
  /** The number of sessions. */
  sessions: number;
}

export interface NewUser {
  name: string;
  password: string;
  roles: Roles;
}

export interface UserChanges {
  password?: string;
  roles?: Roles;
  disabled?: boolean;
  /** Only `false`: switches the second factor off. */
  totp?: false;
  /** Ends the sessions, as each change does. */
  logout?: true;
}

/** `/api/v1/admin/audit`: newest first. */
export interface AuditAnswer {
  records: AuditRecord[];
  /** The parameter `before` of the next older page; `null` at the oldest record. */
  before: number | null;
}

export interface AuditRecord {
  seq: number;
  at: number;
  kind: "key" | "user" | "client" | "code" | "machine" | "none";
  who: string;
  address: string;
  action: string;
  object: string;
  outcome: "done" | "failed" | "refused";
  status: number;
  reason: string;
  /** The number of identical refusals of an address in a minute. */
  count: number;
}
