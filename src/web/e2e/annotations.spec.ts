/** Annotations on charts: each chart shows those of its own hosts. */
import { areaOf, boxOf, chartOf } from "./support/charts";
import { HOST, NOW } from "./support/data";
import { drawnChart } from "./support/drawn";
import { expect, test } from "./support/test";
import { MINUTE } from "./support/zones";

test("a chart shows annotations of its hosts, and no others", async ({ page, startDaemon }) => {
  const daemon = await startDaemon();
  const at = NOW - 30 * MINUTE;
  const samples = [HOST, "web2"].flatMap((host) =>
    Array.from({ length: 60 }, (_, k) => ({
      metric: "system_load_1m",
      tags: { host },
      time: NOW - k * MINUTE,
      value: k,
    })),
  );
  await daemon.postSamples(samples);
  for (const host of [HOST, "web2"]) {
    const annotation = { time: at, text: `deployed on ${host}`, tags: { host } };
    await daemon.post("/api/v1/annotations", annotation);
  }
  const metric = "system_load_1m";
  const tipAt = async (path: string, title: string) => {
    await page.goto(daemon.url + path);
    const { times } = await drawnChart(page, title);
    const [start = 0, end = 0] = [times[0], times.at(-1)];
    const box = await boxOf(areaOf(page, title));
    const tip = chartOf(page, title).locator(".plot-tip");
    // The annotations arrive after the values.
    await expect
      .poll(async () => {
        await page.mouse.move(5, 5);
        await page.mouse.move(box.at((at - start) / (end + MINUTE - start)), box.middle);
        return (await tip.textContent())?.match(/deployed on \w+/g) ?? [];
      })
      .not.toEqual([]);
    return (await tip.textContent())?.match(/deployed on \w+/g);
  };
  const explore = `/explore?metric=${metric}&range=1h`;
  expect(await tipAt(`${explore}&tags=host%3D${HOST}`, metric)).toEqual([`deployed on ${HOST}`]);
  expect((await tipAt(explore, metric))?.sort()).toEqual([
    `deployed on ${HOST}`,
    "deployed on web2",
  ]);
  expect(await tipAt(`/hosts/web2?range=1h`, "Load")).toEqual(["deployed on web2"]);
});
