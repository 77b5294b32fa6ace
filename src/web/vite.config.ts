// Builds the page to dist/: a document for each view, and compressed copies of each file. During
// development it serves the page.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig, type Plugin, type Rolldown } from "vite";

/** Files of these kinds are worth compressing. */
const COMPRESSIBLE = /\.(js|css|html|svg|json)$/;

/**
 * The files that most views use. Their styles come before the views' styles, which take precedence.
 */
const BASE =
  /preact|\/src\/(api|app|model)\/|\/src\/parts\/(?!annotate|promql-editor)|\/src\/styles\/(tokens|base|controls|chart)\.css/;

/**
 * Writes views/NAME.html for each of src/views/NAME.tsx: the page's document, which makes the
 * browser request all files of this view before any script runs. See src/api/page/ of the daemon.
 */
function viewDocuments(): Plugin {
  return {
    name: "view-documents",
    apply: "build",
    writeBundle({ dir = "dist" }, bundle) {
      const document = readFileSync(join(dir, "index.html"), "utf8");
      mkdirSync(join(dir, "views"), { recursive: true });
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== "chunk") continue;
        const view = /\/src\/views\/([a-z-]+)\.tsx$/.exec(chunk.facadeModuleId ?? "")?.[1];
        if (view === undefined) continue;
        const links = [...filesOf(chunk, bundle)]
          .filter((file) => !document.includes(file))
          .map((file) =>
            file.endsWith(".css")
              ? `<link rel="stylesheet" crossorigin href="/${file}">`
              : `<link rel="modulepreload" crossorigin href="/${file}">`,
          );
        const viewDocument = document.replace("</head>", `  ${links.join("\n    ")}\n  </head>`);
        writeFileSync(join(dir, "views", `${view}.html`), viewDocument);
      }
    },
  };
}

/** The file of a chunk, its imports, and their styles. */
function filesOf(
  chunk: Rolldown.OutputChunk,
  bundle: Rolldown.OutputBundle,
  files = new Set<string>(),
): Set<string> {
  if (files.has(chunk.fileName)) return files;
  files.add(chunk.fileName);
  for (const style of chunk.viteMetadata?.importedCss ?? []) files.add(style);
  for (const name of chunk.imports) {
    const other = bundle[name];
    if (other?.type === "chunk") filesOf(other, bundle, files);
  }
  return files;
}

/** Writes FILE.br and FILE.gz next to each file, so that the daemon does not compress. */
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
  plugins: [viewDocuments(), precompress()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    // Code that views share is one file instead of a dozen, because a browser sends six requests at
    // a time. All styles, which are small, are one file too, and so is the code of charts.
    cssCodeSplit: false,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            {
              name: "base",
              test: BASE,
              priority: 2,
            },
            {
              name: "charts",
              test: /uplot|\/src\/chart\/|\/src\/parts\/annotate|\/src\/queries\/tags/,
              minShareCount: 2,
              priority: 1,
              includeDependenciesRecursively: false,
            },
          ],
        },
      },
    },
  },
  server: {
    proxy: {
      "^/(api|metrics|readyz|healthz)": process.env["GRANARY_URL"] ?? "http://127.0.0.1:7117",
    },
  },
  // Tests load one copy of each package of the editor, as ES modules.
  ssr: { resolve: { mainFields: ["module"] } },
  test: {
    include: ["src/**/*.test.ts"],
    css: true,
    server: { deps: { inline: [/codemirror|lezer/] } },
  },
});
