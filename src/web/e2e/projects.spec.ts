/** The choice of a project by a user with roles in several. */
import { addUser, fillLogin, firstKey } from "./support/access";
import { expect, test } from "./support/test";

const SETTINGS = {
  "granary.toml":
    "[security]\naccess = true\n[security.projects.shop]\n[security.projects.lab]\n",
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
    await daemon.post("/api/v1/ingest", { samples: [{ metric: `${project}_sales`, value: 1 }] });
    daemon.key = await firstKey(daemon);
  }
  const metrics = `${daemon.url}/explore`;
  await page.goto(metrics);
  await fillLogin(page, "ann");
  const choice = page.getByRole("combobox", { name: "Project" });
  await expect(choice).toHaveValue("lab");
  await expect(choice.getByRole("option")).toHaveText(["lab", "shop"]);
  const body = page.locator("body");
  await expect(body).toContainText("lab_sales");
  await expect(body).not.toContainText("shop_sales");

  await choice.selectOption("shop");
  await expect(choice).toHaveValue("shop");
  await expect(body).toContainText("shop_sales");
  await expect(body).not.toContainText("lab_sales");
  // The tab keeps the choice, and another tab begins with the first project.
  await page.reload();
  await expect(body).toContainText("shop_sales");
  const other = await page.context().newPage();
  await other.goto(metrics);
  await expect(other.getByRole("combobox", { name: "Project" })).toHaveValue("lab");

  // A role that was removed ends the choice.
  await daemon.post("/api/v1/access/users/ann", { roles: { lab: "viewer" } });
  await page.reload();
  await fillLogin(page, "ann");
  await expect(body).toContainText("lab_sales");
  await expect(choice).toHaveCount(0);

  const elsewhere = await (await browser.newContext()).newPage();
  await elsewhere.goto(metrics);
  await fillLogin(elsewhere, "max");
  await expect(elsewhere.locator("body")).toContainText("shop_sales");
  await expect(elsewhere.getByRole("combobox", { name: "Project" })).toHaveCount(0);
  await elsewhere.context().close();
});
