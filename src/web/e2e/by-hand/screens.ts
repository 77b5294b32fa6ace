/** Pictures of every view and state, for review: target/page-screenshots. */
import { join } from "node:path";
import type { Page } from "@playwright/test";
import type { Daemon } from "../support/daemon";
import { hostSamples, NOW, ping } from "../support/data";
import { eventually } from "../support/eventually";
import { openSettled } from "../support/settled";
import { expect, test } from "../support/test";
import { SIZES, VIEWS } from "../support/views";
import { MINUTE } from "../support/zones";

const FOLDER = join(import.meta.dirname, "../../../../target/page-screenshots");
const THEMES = ["dark", "light"] as const;

/** Takes a picture of the page in each theme and size. */
async function takePictures(
  page: Page,
  name: string,
  open: () => Promise<void>,
  fullPage = true,
): Promise<void> {
  for (const size of SIZES) {
    await page.setViewportSize(size);
    for (const colorScheme of THEMES) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await open();
      const path = join(FOLDER, `${name}-${size.width}-${colorScheme}.png`);
      await page.screenshot({ path, fullPage });
    }
  }
}

/** Sends a daemon a fleet with different uptimes, tags and versions; few hosts have samples. */
async function postFleet(daemon: Daemon, hosts: number): Promise<void> {
  for (let k = 0; k < Math.min(hosts, 8); k++) {
    await daemon.postSamples(hostSamples(`web${k + 1}`, 3, k));
  }
  await daemon.postPings(
    Array.from({ length: hosts }, (_, k) =>
      ping(`web${k + 1}`, {
        booted: NOW - (k + 1) * 700 * MINUTE,
        tags: { env: k % 3 === 0 ? "test" : "prod", role: k % 2 === 0 ? "web" : "db" },
        version: k === 3 ? "0.0.9" : "0.1.0",
      }),
    ),
  );
  await daemon.post("/api/v1/annotations", {
    time: NOW - 50 * MINUTE,
    text: "Deploy 2.4.1",
    tags: { host: "web1" },
  });
}

test("views with data", async ({ page, startDaemon }) => {
  const daemon = await startDaemon();
  await daemon.sampleThisMachine("real-host");
  await postFleet(daemon, 12);
  for (const { name, path } of VIEWS) {
    await takePictures(page, name.replaceAll(" ", "-"), () => openSettled(page, daemon.url + path));
  }
  await takePictures(page, "promql", () =>
    openSettled(page, `${daemon.url}/explore?expression=rate(system_cpu_user[5m])&range=6h`),
  );
});

test("views without data", async ({ page, startDaemon }) => {
  const daemon = await startDaemon();
  for (const { name, path } of VIEWS) {
    await takePictures(page, `empty-${name.replaceAll(" ", "-")}`, () =>
      openSettled(page, daemon.url + path),
    );
  }
});

test("views that fail, and that load", async ({ page, startDaemon, watch }) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon();
  const body = JSON.stringify({
    error: "failed",
    message: "a file could not be read; see the log",
  });
  await page.route("**/api/v1/**", (route) =>
    route.fulfill({ status: 500, contentType: "application/json", body }),
  );
  for (const { name, path } of VIEWS) {
    await takePictures(page, `error-${name.replaceAll(" ", "-")}`, () =>
      openSettled(page, daemon.url + path),
    );
  }
  await page.unroute("**/api/v1/**");
  // These requests never get an answer.
  await page.route("**/api/v1/**", () => undefined);
  for (const { name, path } of VIEWS) {
    await takePictures(page, `loading-${name.replaceAll(" ", "-")}`, async () => {
      await page.goto(daemon.url + path);
      await expect(page.locator("main")).not.toBeEmpty();
    });
  }
});

test("a fleet of 5,000 hosts, and a daemon that is away", async ({ page, startDaemon, watch }) => {
  watch.permit(/Failed to load resource/);
  const daemon = await startDaemon();
  await postFleet(daemon, 5000);
  await takePictures(page, "many-hosts", () => openSettled(page, daemon.url), false);
  const outageNotice = page.getByRole("alert").filter({ hasText: "The daemon has not answered" });
  await takePictures(page, "away", async () => {
    await openSettled(page, daemon.url);
    await daemon.kill();
    await eventually("the outage is shown", () => outageNotice.isVisible());
    await page.evaluate(() => scrollTo(0, 0));
    void daemon.run();
  });
});
