// Drives the page in a real browser, served by the real daemon. See e2e/support/daemon.ts.
import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: "e2e",
  testMatch: "*.spec.ts",
  outputDir: "../../target/page-tests",
  workers: 2,
  // On a busy machine, a test may check a chart that is still coarse, or a half-changed theme. A
  // test that passes at the second attempt is reported as flaky.
  retries: process.env["CI"] ? 2 : 0,
  timeout: 60_000,
  expect: { timeout: 10_000 },
  reporter: [["list"]],
  use: {
    actionTimeout: 10_000,
    viewport: { width: 1440, height: 900 },
    colorScheme: "dark",
    timezoneId: "Europe/Berlin",
    locale: "en-GB",
    trace: "retain-on-failure",
    launchOptions: {
      executablePath: process.env["GRANARY_CHROMIUM"] ?? "/usr/bin/chromium",
      args: ["--disable-gpu", "--disable-dev-shm-usage"],
    },
  },
});
