/**
 * Hostile names: some would run as scripts unless shown as text, others have characters that reverse
 * text. The fixture `watch` of each page fails a test in which a script ran.
 */
import { tagsOf } from "../src/queries/tags";
import { areaOf, boxOf } from "./support/charts";
import { HOST, HOSTILE, NOW, ping } from "./support/data";
import { drawnChart } from "./support/drawn";
import { expect, test } from "./support/test";
import { MINUTE } from "./support/zones";

for (const name of HOSTILE) {
  const encoded = encodeURIComponent(name);

  test(`a host named ${name} is text in the fleet and on the host's view`, async ({ page }) => {
    await page.goto("/");
    await page.getByRole("link", { name, exact: true }).click();
    await expect(page).toHaveURL(`/hosts/${encoded}`);
    await expect(page.getByRole("heading", { level: 1 })).toContainText(name);
    await drawnChart(page, "Load");
    await page.goto(`/?q=${encoded}`);
    await expect(page.getByRole("link", { name, exact: true })).toBeVisible();
  });

  test(`a metric and a tag named ${name} are text in Explore`, async ({ page }) => {
    await page.goto(`/explore?metric=${encoded}&range=6h`);
    await drawnChart(page, name);
    await expect(page.locator(".facet-text").first()).toBeVisible();
    await page.getByRole("combobox", { name: "Metric of query A" }).fill("hacked");
    await expect(page.getByRole("option").filter({ hasText: name }).first()).toBeVisible();
    const tags = encodeURIComponent(tagsOf(new Map([["host", name]])));
    await page.goto(`/explore?metric=system_load_1m&range=6h&tags=${tags}`);
    await drawnChart(page, "system_load_1m");
  });

  test(`a dashboard full of ${name} is text`, async ({ page, daemon }) => {
    const dashboardName = `hostile-${HOSTILE.indexOf(name)}-${Date.now().toString(36)}`;
    const place = { x: 0, y: 0, w: 6, h: 6 };
    const panels = [
      {
        id: "chart",
        ...place,
        title: name,
        kind: "chart",
        queries: [{ kind: "metric", metric: name, tags: `host=${HOST}` }],
      },
      {
        id: "text",
        ...place,
        x: 6,
        title: name,
        kind: "text",
        text: `${name}\n\n[link](javascript:window.hacked=1)\n\n# ${name}\n- ${name}\n\`${name}\``,
      },
    ];
    const dashboard = { schema: 1, title: name, variables: [], panels };
    await daemon.post(`/api/v1/dashboards/${dashboardName}`, { version: null, dashboard }, "PUT");
    await daemon.post("/api/v1/annotations", {
      time: NOW - 10 * MINUTE,
      text: name,
      tags: { host: HOST, [name]: name },
    });
    await page.goto("/dashboards");
    await expect(page.getByRole("link", { name, exact: true }).first()).toBeVisible();
    await page.goto(`/dashboards/${dashboardName}?range=6h`);
    await drawnChart(page, name);
    await expect(page.locator(".text-panel h2").first()).toHaveText(name);
    await expect(page.locator(".text-panel a[href^='javascript']")).toHaveCount(0);
    await page.goto(`/dashboards/${dashboardName}?edit=1`);
    await expect(page.getByRole("textbox", { name: "Title of the dashboard" })).toHaveValue(name);
    for (const view of ["/storage", "/status", `/hosts/${HOST}`]) {
      await page.goto(view);
      await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
    }
    await drawnChart(page, "Load");
  });
}

test("bidirectional control characters in a name are escaped, also in tooltips and titles", async ({
  page,
  startDaemon,
}) => {
  const daemon = await startDaemon();
  const host = "web\u202e1";
  const samples = Array.from({ length: 30 }, (_, k) => ({
    metric: "system_load_1m",
    tags: { host },
    time: NOW - (k + 1) * MINUTE,
    value: 1,
  }));
  await daemon.postSamples([...samples, ...samples.map((s) => ({ ...s, tags: { host: "web2" } }))]);
  await daemon.postPings([ping(host)]);
  await page.goto(`${daemon.url}/explore?metric=system_load_1m&range=30m`);
  await drawnChart(page, "system_load_1m");
  const { at, middle } = await boxOf(areaOf(page, "system_load_1m"));
  await page.mouse.move(at(0.5), middle);
  await expect(page.locator(".plot-tip")).toContainText("web\\u{202e}1");
  await expect(page.locator(".legend-label").filter({ hasText: "202e" })).toHaveText(
    "web\\u{202e}1",
  );
  await page.goto(`${daemon.url}/hosts/${encodeURIComponent(host)}`);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("web\\u{202e}1");
  await expect(page).toHaveTitle("web\\u{202e}1 · Granary");
});
