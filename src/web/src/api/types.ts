/**
 * The types of the daemon's answers and of the bodies sent to it; `e2e/answers.spec.ts` checks them
 * against a real daemon, in both directions. Times are Unix milliseconds.
 */
export type * from "./types/access";
export type * from "./types/alerting";
export type * from "./types/hosts";
export type * from "./types/objects";
export type * from "./types/series";
export type * from "./types/status";
export type * from "./types/storage";
