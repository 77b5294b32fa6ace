import { chromium } from "playwright";
const b = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--disable-gpu","--disable-dev-shm-usage"] });
const [base, out, ...rest] = process.argv.slice(2);
for (const spec of rest) {
  const [name, path, mode] = spec.split("|");
  for (const scheme of ["light","dark"]) for (const [w,h] of [[1280,900],[390,844]]) {
    const c = await b.newContext({ viewport: { width: w, height: h }, colorScheme: scheme, locale: "en-GB", timezoneId: "Europe/Berlin", reducedMotion: "reduce" });
    const p = await c.newPage();
    await p.goto(base + path);
    await p.waitForTimeout(3500);
    if (mode === "full") { const H = await p.evaluate(() => document.documentElement.scrollHeight); for (let y = 0; y < H; y += 700) { await p.evaluate((y) => scrollTo(0, y), y); await p.waitForTimeout(250); } await p.evaluate(() => scrollTo(0,0)); await p.waitForTimeout(500); }
    await p.screenshot({ path: `${out}/${name}-${w}-${scheme}.png`, fullPage: mode === "full" });
    await c.close();
  }
}
await b.close();
