/** Access control: keys. */

/** A permission of a key. */
export type Scope = "ingest" | "read" | "objects" | "admin" | "operate";

/** `/api/v1/access/keys` */
export interface KeysAnswer {
  /** Whether the daemon requires keys. */
  access: boolean;
  keys: KeyEntry[];
}

export interface KeyEntry {
  id: string;
  name: string;
  scopes: Scope[];
  /** The prefix of the senders' names that the key may use; `null`: all. */
  senders: string | null;
  /** True when `senders` is the whole name of the only sender. */
  one_sender: boolean;
  created: number;
  created_by: string;
  expires: number | null;
  /** The life of each secret, when the holder of the key renews it. */
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
