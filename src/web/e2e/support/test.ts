/** The test of these files: a daemon for each worker, and a watch on each page. */
import { test as base, expect } from "@playwright/test";
import { Daemon } from "./daemon";
import { fill } from "./data";
import { Watch } from "./watch";

interface ForTests {
  watch: Watch;
  /** Starts a daemon of the test's own, without data, which ends with the test. */
  startDaemon: () => Promise<Daemon>;
}

interface ForWorkers {
  /** A daemon with a real agent and the data of `data.ts`, which tests share. */
  daemon: Daemon;
}

export const test = base.extend<ForTests, ForWorkers>({
  daemon: [
    async ({}, use) => {
      const daemon = await Daemon.start();
      await daemon.sampleThisMachine("real-host");
      await fill(daemon);
      await use(daemon);
      await daemon.end();
    },
    { scope: "worker", timeout: 60_000 },
  ],
  baseURL: async ({ daemon }, use) => {
    await use(daemon.url);
  },
  watch: [
    async ({ context, baseURL }, use) => {
      const watch = new Watch(context, [baseURL ?? ""]);
      await watch.begin();
      await use(watch);
      await watch.end();
    },
    { auto: true },
  ],
  startDaemon: async ({ watch }, use) => {
    const started: Daemon[] = [];
    await use(async () => {
      const daemon = await Daemon.start();
      started.push(daemon);
      watch.origins.push(daemon.url);
      return daemon;
    });
    for (const daemon of started) await daemon.end();
  },
});

export { expect };
