/** The first chart of the page with a login and without, on the same machine. */
import { ACCESS, addUser, fillLogin } from "../support/access";
import { measureOpening, quantile, summary } from "../support/clock";
import { HOST, hostSamples, ping } from "../support/data";
import type { Daemon } from "../support/daemon";
import { isChartDrawn } from "../support/drawn";
import { expect, test } from "../support/test";

/** Rounds, each without and with a login, so that the machine's load is the same for both. */
const ROUNDS = 6;
const RUNS = 5;

async function postHost(daemon: Daemon): Promise<void> {
  await daemon.postSamples(hostSamples(HOST, 3, 0));
  await daemon.postPings([ping(HOST)]);
}

test("the first chart with a login", async ({ browser, page, startDaemon, watch }) => {
  watch.permit(/Failed to load resource/);
  const [open, closed] = [await startDaemon(), await startDaemon(ACCESS)];
  await addUser(closed, "ann", { default: "viewer" });
  await postHost(open);
  await postHost(closed);
  const path = `/hosts/${HOST}?resolution=1m&range=1h`;
  await page.goto(closed.url + path);
  await fillLogin(page, "ann");
  await expect(page.getByRole("link", { name: "Profile of ann" })).toBeVisible();
  const cookies = await page.context().cookies();
  const times: Record<"open" | "closed", number[]> = { open: [], closed: [] };
  for (let round = 0; round < ROUNDS; round++) {
    const options = { runs: RUNS, cookies };
    const without = await measureOpening(browser, open.url + path, isChartDrawn, { runs: RUNS });
    const withLogin = await measureOpening(browser, closed.url + path, isChartDrawn, options);
    times.open.push(...without.times);
    times.closed.push(...withLogin.times);
  }
  const difference = quantile(times.closed, 0.5) - quantile(times.open, 0.5);
  console.log(`first chart without access control: ${summary(times.open)}`);
  console.log(`first chart with a login: ${summary(times.closed)}`);
  console.log(`difference of the medians: ${difference.toFixed(1)} ms`);
});
