// Bundles the studio's page for the package: `make dist`. Each part of the page that is loaded by itself becomes a file
// of its name. The command line names the folder.
//
// Parts share modules. Each set of parts that share some would give a chunk, and a first visit a dozen of requests. So
// all parts import what the first page is made of, which is one chunk then; and all others what lists and forms share.
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const page = join(here, "../server/api/studio/page");
const target = process.argv[2];
const COPIED = ["index.html", "icon.svg", "preview/script.js", "vendor/licences.txt", "vendor/manifest.json"];
const MESSAGES = readdirSync(join(page, "messages")).map((name) => `messages/${name}`); // the languages but English
const FIRST = "main.js";
const WORK = ["documents/list-page.js", "documents/document-page.js"]; // what most people go on to
const options = { absWorkingDir: page, bundle: true, minify: true, target: "es2022", legalComments: "none" };

const textOf = (name) => readFileSync(join(page, name), "utf8");

/** The modules that are loaded by themselves, when they are needed. */
function partsOf() {
  const names = readdirSync(page, { recursive: true }).filter((name) => name.endsWith(".js") && !/^vendor/.test(name));
  const loads = /\b(?:later|loadPart)\("([^"]+)"/g;
  const paths = names.flatMap((name) => [...textOf(name).matchAll(loads)].map(([, path]) => path));
  return [...new Set(paths)].sort();
}

/** The modules that one imports, also by way of others. */
function importsOf(name, known = new Set()) {
  for (const [, path] of textOf(name).matchAll(/ from "(\.{1,2}\/[^"]+\.js)";/g)) {
    const imported = normalize(join(dirname(name), path));
    if (known.has(imported)) continue;
    known.add(imported);
    importsOf(imported, known);
  }
  return known;
}

const core = [...importsOf(FIRST)];
const [list, form] = WORK.map((name) => importsOf(name));
const shared = [...list].filter((name) => form.has(name) && !core.includes(name));

/** Removes the indentation, also in templates of htm and of texts, where it means nothing. */
const withoutIndentation = (text) => text.replace(/\n +/g, "\n");

/** Has parts import more than they need, so that modules are in as few chunks as can be. */
const grouping = {
  name: "grouping",
  setup(builder) {
    builder.onLoad({ filter: /\.js$/ }, ({ path }) => {
      const name = relative(page, path);
      const more = name === FIRST ? core : parts.includes(name) ? [...core, ...shared] : [];
      const imports = more.map((one) => `import ${JSON.stringify(join(page, one))};`);
      return { contents: [...imports, withoutIndentation(textOf(name))].join("\n"), resolveDir: dirname(path) };
    });
  },
};

const parts = partsOf();
rmSync(target, { recursive: true, force: true });
await build({
  ...options, entryPoints: [FIRST, ...parts], outbase: page, outdir: target, splitting: true, format: "esm",
  chunkNames: "chunk-[hash]", plugins: [grouping],
});
await build({ ...options, entryPoints: ["page.css"], outdir: target });
for (const name of [...COPIED, ...MESSAGES]) {
  mkdirSync(dirname(join(target, name)), { recursive: true });
  copyFileSync(join(page, name), join(target, name));
}
// What browsers are sent, so that no server has to compress it: the best quality takes half a second for the editors.
for (const name of readdirSync(target, { recursive: true }).filter((one) => /\.(js|css|json|svg|txt)$/.test(one))) {
  writeFileSync(join(target, `${name}.br`), brotliCompressSync(readFileSync(join(target, name))));
}
