/** A daemon with access control: its first key, users, logins. */
import { createHmac } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, type Page } from "@playwright/test";
import type { Roles } from "../../src/api/types";
import type { Daemon } from "./daemon";

/** Settings that turn access control on. */
export const ACCESS = { "granary.toml": "[security]\naccess = true\n" };

/** A password of users in tests. */
export const PASSWORD = "correct horse battery";

/** Returns the first key, which has all rights, from the data directory. */
export async function firstKey(daemon: Daemon): Promise<string> {
  return (await readFile(join(daemon.folder, "data", "first-key"), "utf8")).trim();
}

/** Returns the one-time link that registers the first administrator, from the data directory. */
export async function firstLink(daemon: Daemon): Promise<URL> {
  return new URL((await readFile(join(daemon.folder, "data", "first-admin"), "utf8")).trim());
}

/** Adds a user with `PASSWORD`. From then on, `daemon` uses the first key. */
export async function addUser(daemon: Daemon, name: string, roles: Roles): Promise<void> {
  daemon.key = await firstKey(daemon);
  await daemon.post("/api/v1/access/users", { name, password: PASSWORD, roles });
}

/** Fills in the login that the page shows. */
export async function fillLogin(page: Page, user: string, password = PASSWORD): Promise<void> {
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  await page.getByLabel("User").fill(user);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
}

/** Opens an address with a key, in the form for keys. */
export async function openWithKey(page: Page, url: string, key: string): Promise<void> {
  await page.goto(url);
  await page.getByRole("button", { name: "Use a key" }).click();
  await page.getByLabel("Key", { exact: true }).fill(key);
  await page.getByRole("button", { name: "Use key" }).click();
}

/** The alphabet of base32 (RFC 4648). */
const BASE32_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const STEP_MS = 30_000;

/** Returns the TOTP code (RFC 6238) of a secret in base32, `steps` times 30 seconds from now. */
export function totpCode(secret: string, steps = 0): string {
  const bits = Array.from(secret, (letter) =>
    BASE32_ALPHABET.indexOf(letter).toString(2).padStart(5, "0"),
  );
  const bytes = bits.join("").match(/.{8}/g) ?? [];
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / STEP_MS) + steps));
  const key = Buffer.from(bytes.map((byte) => parseInt(byte, 2)));
  const mac = createHmac("sha1", key).update(counter).digest();
  const offset = (mac.at(-1) ?? 0) & 15;
  return String((mac.readUInt32BE(offset) & 0x7fff_ffff) % 1_000_000).padStart(6, "0");
}
