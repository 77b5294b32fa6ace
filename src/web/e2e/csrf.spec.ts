/** Pages of other origins change nothing, although the browser sends them the cookie. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { ACCESS, addUser, fillLogin } from "./support/access";
import { expect, test } from "./support/test";

interface Attempt {
  path: string;
  method: string;
  body: string;
}

/** Changes that a foreign page attempts, each by scripts and, where it can, by a form. */
const ATTEMPTS: readonly Attempt[] = [
  {
    path: "/api/v1/access/users",
    method: "POST",
    body: '{"name": "mallory", "password": "mallory mallory", "roles": {"*": "admin"}}',
  },
  {
    path: "/api/v1/access/keys",
    method: "POST",
    body: '{"name": "stolen", "scopes": ["admin"]}',
  },
  {
    path: "/api/v1/annotations",
    method: "POST",
    body: '{"time": 1764148000000, "text": "defaced"}',
  },
  { path: "/api/v1/access/users/root", method: "DELETE", body: "" },
  { path: "/api/v1/access/logout", method: "POST", body: "" },
];

test("a page of another origin changes nothing with the reader's session", async ({
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/, /CORS policy/, /chrome-error/);
  const daemon = await startDaemon(ACCESS);
  await addUser(daemon, "root", { "*": "admin" });
  await page.goto(`${daemon.url}/access`);
  await fillLogin(page, "root");
  await expect(page.getByRole("link", { name: "Profile of root" })).toBeVisible();
  const state = async () => {
    const paths = ["/api/v1/access/users", "/api/v1/access/keys"];
    paths.push("/api/v1/annotations?start=1764147000000&end=1764149000000");
    const answers = await Promise.all(paths.map((path) => daemon.request(path)));
    return JSON.stringify(answers).replaceAll(/"(used|last_login)":\d+/g, "");
  };
  const before = await state();

  const foreign = createServer((_, answer) => {
    answer.setHeader("content-type", "text/html");
    answer.end("<!doctype html><title>foreign</title>");
  }).listen(0);
  await once(foreign, "listening");
  const { port } = foreign.address() as AddressInfo;
  // Another port of the same address is the same site, to which the browser sends the cookie;
  // another name is another site.
  for (const origin of [`http://127.0.0.1:${port}`, `http://localhost:${port}`]) {
    watch.origins.push(origin);
    for (const attempt of ATTEMPTS) {
      await page.goto(origin);
      for (const type of ["application/json", "text/plain"]) {
        await page.evaluate(
          async ({ url, method, body, type }) => {
            const mode = type === "text/plain" ? "no-cors" : "cors";
            const headers = { "content-type": type };
            const init = { method, headers, mode, credentials: "include" as const } as const;
            await fetch(url, body === "" ? init : { ...init, body }).catch(() => undefined);
          },
          { ...attempt, url: daemon.url + attempt.path, type },
        );
      }
      if (attempt.method !== "POST") continue;
      // A form's text begins with a name and "=", which JSON can contain.
      const answered = page.waitForResponse((answer) => answer.url() === daemon.url + attempt.path);
      await page.evaluate(
        ({ url, body }) => {
          const form = document.createElement("form");
          Object.assign(form, { action: url, method: "POST", enctype: "text/plain" });
          const field = document.createElement("input");
          field.name = body.replace(/\}$/, ', "x": "');
          field.value = '"}';
          form.append(field);
          document.body.append(form);
          form.submit();
        },
        { url: daemon.url + attempt.path, body: attempt.body },
      );
      expect((await answered).status()).toBe(403);
      await page.waitForURL(daemon.url + attempt.path);
    }
  }
  foreign.close();
  expect(await state()).toBe(before);
  await page.goto(`${daemon.url}/access?show=users`);
  await expect(page.getByText("admin of everything"), "the session continues").toBeVisible();

  // The session's cookie alone is not enough on the daemon's own page either.
  const status = await page.evaluate(async () => {
    const body = JSON.stringify({ name: "stolen", scopes: ["admin"] });
    const headers = { "content-type": "application/json" };
    return (await fetch("/api/v1/access/keys", { method: "POST", headers, body })).status;
  });
  expect(status).toBe(403);
  expect(await state()).toBe(before);
});
