// Builds the page to dist/, each file also compressed, and serves it while one works on it.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

/** Files of these kinds are worth compressing. */
const COMPRESSIBLE = /\.(js|css|html|svg|json)$/;

/** Writes FILE.br and FILE.gz beside each file, so that the daemon compresses nothing. */
function precompress(): Plugin {
  return {
    name: "precompress",
    apply: "build",
    closeBundle() {
      const folder = join(import.meta.dirname, "dist");
      for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
        if (!COMPRESSIBLE.test(name)) continue;
        const file = join(folder, name);
        const bytes = readFileSync(file);
        const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
        writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params: quality }));
        writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
      }
    },
  };
}

export default defineConfig({
  plugins: [precompress()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: { target: "es2022", modulePreload: { polyfill: false }, assetsInlineLimit: 0 },
  server: {
    proxy: {
      "^/(api|metrics|readyz|healthz)": process.env["GRANARY_URL"] ?? "http://127.0.0.1:7117",
    },
  },
  test: { include: ["src/**/*.test.ts"], css: true },
});
