/** A login at a real provider of OpenID Connect, the npm package oidc-provider with its own forms. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ACCESS } from "./support/access";
import { type Daemon, freePort } from "./support/daemon";
import { expect, test } from "./support/test";

const ROOT = join(import.meta.dirname, "../../..");
const MODULES = process.env["GRANARY_TEST_NODE_PATH"] ?? join(ROOT, "target/node/node_modules");
const SECRET = "a secret of tests & of nothing else";

test.skip(!existsSync(join(MODULES, "oidc-provider")), "oidc-provider is missing: run .ci/run");

/** Starts the provider of a daemon; the process ends with the test. */
async function startProvider(daemon: Daemon, port: number): Promise<ChildProcess> {
  const options = {
    port,
    redirect: `${daemon.url}/login/oidc/callback`,
    secret: SECRET,
    kid: "first",
    alg: "RS256",
    idTokenHasClaims: true,
    idTokenSeconds: 600,
  };
  const script = join(ROOT, "tests/data/clients/oidc_provider.js");
  const process_ = spawn(process.execPath, [script, JSON.stringify(options)], {
    env: { ...process.env, NODE_PATH: MODULES },
    stdio: ["ignore", "pipe", "ignore"],
  });
  await once(createInterface(process_.stdout), "line");
  return process_;
}

/** Adds the provider to the daemon's settings, and starts the daemon again. */
async function useProvider(daemon: Daemon, port: number): Promise<void> {
  const path = join(daemon.folder, "granary.toml");
  const settings = await readFile(path, "utf8");
  await writeFile(path, `server.external_url = "${daemon.url}"\n${settings}`);
  await appendFile(
    path,
    `\n[security.oidc]\nname = "Example"\nissuer = "http://127.0.0.1:${port}"\n` +
      `client_id = "granary"\nclient_secret = "${SECRET}"\nroles = { dev = { default = "viewer" } }\n`,
  );
  await daemon.kill();
  await daemon.run();
}

test("a person logs in with the button, at the provider's form", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  // The provider's form loads fonts from there.
  watch.permit(/fonts\.googleapis\.com/);
  const daemon = await startDaemon(ACCESS);
  const port = await freePort();
  const provider = `http://127.0.0.1:${port}`;
  watch.origins.push(provider);
  await useProvider(daemon, port);
  const button = page.getByRole("link", { name: "Log in with Example" });
  await page.goto(`${daemon.url}/explore`);
  await button.click();
  await expect(page.getByRole("heading", { name: "Provider unavailable" })).toBeVisible();
  const process_ = await startProvider(daemon, port);
  try {
    await expect(async () => {
      await page.goto(`${daemon.url}/login`);
      await button.click();
      await expect(page.getByPlaceholder("Enter any login")).toBeVisible({ timeout: 1000 });
    }).toPass();
    await page.getByPlaceholder("Enter any login").fill("ann");
    await page.getByPlaceholder("and password").fill("any");
    await page.getByRole("button", { name: "Sign-in" }).click();
    await page.getByRole("button", { name: "Continue" }).click();
    await expect(page.getByRole("link", { name: "Profile of ann@example.org" })).toBeVisible();
    expect(page.url()).toBe(`${daemon.url}/`);
    expect(await page.evaluate(() => document.cookie), "scripts cannot read it").toBe("");
    await page.goto(`${daemon.url}/profile`);
    await expect(page.getByText("You log in at your provider")).toBeVisible();
    await page.getByRole("button", { name: "Log out" }).first().click();
    await expect(button).toBeVisible();

    // A page of another site leads to the login, and begins no session.
    await page.goto(`${provider}/jwks`);
    await page.evaluate((address) => location.assign(address), `${daemon.url}/login/oidc`);
    await expect(button).toBeVisible();
    expect(page.url()).toBe(`${daemon.url}/login`);
  } finally {
    process_.kill();
  }
});
