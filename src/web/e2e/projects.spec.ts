/** The choice of a project by a user with roles in several. */
import { addUser, fillLogin, firstKey } from "./support/access";
import { expect, test } from "./support/test";

const SETTINGS = {
  "granary.toml": "[security]\naccess = true\n[security.projects.shop]\n[security.projects.lab]\n",
};

test("a user with roles in several projects chooses one, and others see no choice", async ({
  browser,
  page,
  startDaemon,
  watch,
}) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon(SETTINGS);
  await addUser(daemon, "ann", { shop: "editor", lab: "viewer" });
  await addUser(daemon, "max", { shop: "viewer" });
  daemon.key = await firstKey(daemon);
  for (const project of ["shop", "lab"]) {
    const made = (await daemon.post("/api/v1/access/keys", {
      name: "team",
      project,
      scopes: ["admin"],
    })) as { token: string };
    daemon.key = made.token;
    const dashboard = { schema: 1, title: `${project} sales`, variables: [], panels: [] };
    await daemon.post("/api/v1/dashboards/sales", { version: null, dashboard }, "PUT");
    daemon.key = await firstKey(daemon);
  }
  const dashboards = `${daemon.url}/dashboards`;
  await page.goto(dashboards);
  await fillLogin(page, "ann");
  const choice = page.getByRole("combobox", { name: "Project" });
  await expect(choice).toHaveValue("lab");
  await expect(choice.getByRole("option")).toHaveText(["lab", "shop"]);
  const body = page.locator("body");
  await expect(body).toContainText("lab sales");
  await expect(body).not.toContainText("shop sales");

  await choice.selectOption("shop");
  await expect(choice).toHaveValue("shop");
  await expect(body).toContainText("shop sales");
  await expect(body).not.toContainText("lab sales");
  // The tab keeps the choice; another tab begins with the first project.
  await page.reload();
  await expect(body).toContainText("shop sales");
  const other = await page.context().newPage();
  await other.goto(dashboards);
  await expect(other.getByRole("combobox", { name: "Project" })).toHaveValue("lab");

  // When the role is removed, the choice ends.
  await daemon.post("/api/v1/access/users/ann", { roles: { lab: "viewer" } });
  await page.reload();
  await fillLogin(page, "ann");
  await expect(body).toContainText("lab sales");
  await expect(choice).toHaveCount(0);

  const elsewhere = await (await browser.newContext()).newPage();
  await elsewhere.goto(dashboards);
  await fillLogin(elsewhere, "max");
  await expect(elsewhere.locator("body")).toContainText("shop sales");
  await expect(elsewhere.getByRole("combobox", { name: "Project" })).toHaveCount(0);
  await elsewhere.context().close();
});
