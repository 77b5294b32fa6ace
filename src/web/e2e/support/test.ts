/** The `test` of these files: a daemon for each worker, and a watch on each page. */
import { test as base, expect } from "@playwright/test";
import { Daemon, type Files } from "./daemon";
import { postTestData } from "./data";
import { RULES } from "./rules";
import { Watch } from "./watch";

const USUAL: Files = { "rules.yml": RULES };

interface ForTests {
  watch: Watch;
  /** The daemons that one test starts; they end after the watch on its pages. */
  daemons: Daemon[];
  /** Starts another daemon without data; `files` replace or complete the default files. */
  startDaemon: (files?: Partial<Files>) => Promise<Daemon>;
}

interface ForWorkers {
  /** A daemon with a real agent and the data of `data.ts`, shared by tests. */
  daemon: Daemon;
}

export const test = base.extend<ForTests, ForWorkers>({
  daemon: [
    async ({}, use) => {
      const daemon = await Daemon.start(USUAL);
      await daemon.sampleThisMachine("real-host");
      await postTestData(daemon);
      await use(daemon);
      await daemon.remove();
    },
    { scope: "worker", timeout: 60_000 },
  ],
  baseURL: async ({ daemon }, use) => {
    await use(daemon.url);
  },
  daemons: async ({}, use) => {
    const daemons: Daemon[] = [];
    await use(daemons);
    for (const daemon of daemons) await daemon.remove();
  },
  watch: [
    // eslint-disable-next-line @typescript-eslint/no-unused-vars -- what a test uses ends after it
    async ({ context, baseURL, daemons: _ }, use) => {
      const watch = new Watch(context, [baseURL ?? ""]);
      await watch.begin();
      await use(watch);
      await watch.end();
    },
    { auto: true },
  ],
  startDaemon: async ({ daemons, watch }, use) => {
    await use(async (files) => {
      const daemon = await Daemon.start({ ...USUAL, ...files });
      daemons.push(daemon);
      watch.origins.push(daemon.url);
      return daemon;
    });
  },
});

export { expect };
