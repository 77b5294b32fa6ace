/** Pictures of charts with 1, 3, 30 and 200 series: target/page-screenshots. */
import { join } from "node:path";
import { areaOf, boxOf, nextFrame } from "../support/charts";
import type { Sample } from "../support/daemon";
import { NOW, ping } from "../support/data";
import { storeMany } from "../support/panels";
import { openSettled } from "../support/settled";
import { test } from "../support/test";
import { SIZES } from "../support/views";
import { MINUTE } from "../support/zones";

const FOLDER = join(import.meta.dirname, "../../../../target/page-screenshots");
const COUNTS = [1, 3, 30, 200];
const METRIC = "system_load_1m";

function samples(): Sample[] {
  return COUNTS.flatMap((count) =>
    Array.from({ length: count }, (_, k) =>
      Array.from({ length: 120 }, (_, minute) => ({
        metric: METRIC,
        tags: { host: `db-frankfurt-cluster-${count}-node-${k + 1}`, set: `n${count}` },
        time: NOW - (minute + 1) * MINUTE,
        value: 1 + (k % 17) / 4 + Math.sin(minute / 9 + k / 3) * (1 + (k % 5) / 4) ** 2,
      })),
    ).flat(),
  );
}

test("charts with few and many series", async ({ page, startDaemon }) => {
  const daemon = await startDaemon();
  await daemon.postSamples(samples());
  await daemon.postPings([ping("db-frankfurt-cluster-1-node-1")]);
  const title = (count: number) => `Load of ${count}`;
  await storeMany(daemon, { metric: METRIC, counts: COUNTS, title });
  const shoot = async (name: string, path: string, pointed?: string) => {
    for (const size of [...SIZES, { width: 1280, height: 900 }]) {
      for (const colorScheme of ["dark", "light"] as const) {
        await page.setViewportSize(size);
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        await openSettled(page, daemon.url + path);
        if (pointed) {
          const { at, middle } = await boxOf(areaOf(page, pointed));
          await page.mouse.move(at(0.6), middle);
          await nextFrame(page);
        }
        const file = `${name}-${size.width}-${colorScheme}.png`;
        await page.screenshot({ path: join(FOLDER, file), fullPage: !pointed });
      }
    }
  };
  await shoot("series-board", "/dashboards/many?range=1h");
  await shoot("series-board-pointed", "/dashboards/many?range=1h", "Load of 30");
  for (const count of [3, 200])
    await shoot(
      `series-${count}`,
      `/explore?metric=${METRIC}&tags=set%3Dn${count}&range=1h`,
      METRIC,
    );
});
