// Tests that run on demand: pictures of every view, and the speed of the page.
import { defineConfig } from "@playwright/test";
import tests from "./playwright.config";

export default defineConfig(tests, {
  testDir: "e2e/by-hand",
  testMatch: "*.ts",
  workers: 1,
  timeout: 900_000,
  use: { trace: "off", actionTimeout: 30_000 },
});
