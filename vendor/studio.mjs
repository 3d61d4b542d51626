// Bundles the studio's page for the package: `make dist`. Each part of the page that is loaded by itself becomes a file
// of its name. The command line names the folder.
//
// Parts share modules. Each set of parts that share some would give a chunk, and a first visit a dozen of requests. So
// all parts import what the first page is made of, and what lists and forms are made of. Each of both is one chunk then.
// The first one becomes main.js itself, which would otherwise be a file that only imports it.
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync } from "node:zlib";
import { build } from "esbuild";
import { minified } from "./minify.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const page = join(here, "../server/api/studio/page");
const target = process.argv[2];
const COPIED = ["index.html", "preview/script.js", "vendor/licences.txt", "vendor/manifest.json"];
const MESSAGES = readdirSync(join(page, "messages")).map((name) => `messages/${name}`); // the languages but English
const FIRST = "main.js";
const WORK = "documents/pages.js"; // what most people go on to
const options = { absWorkingDir: page, bundle: true, minify: true, target: "es2022", legalComments: "none" };
options.write = false;

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

const core = [FIRST, ...importsOf(FIRST)];
const work = [...importsOf(WORK)].filter((name) => !core.includes(name));

/** Removes the indentation, also in templates of htm and of texts, and line breaks around tags: they mean nothing. */
const withoutIndentation = (text) => {
  return text.replace(/\n +/g, "\n").replace(/(?<=[^=]>)\n(?=[<$])|(?<=\})\n(?=<)/g, "");
};

/** Removes the line ends between the elements of a template, where they mean nothing either. */
const withoutLineEnds = (text) => text.replace(/>\n(?=<|\$\{)/g, ">").replace(/\}\n(?=<)/g, "}");

/** Has parts import more than they need, so that modules are in as few chunks as can be. */
const grouping = {
  name: "grouping",
  setup(builder) {
    builder.onLoad({ filter: /\.js$/ }, ({ path }) => {
      const name = relative(page, path);
      const more = parts.includes(name) ? [...core, ...work] : [];
      const imports = more.map((one) => `import ${JSON.stringify(join(page, one))};`);
      const text = withoutIndentation(textOf(name));
      const own = name.startsWith("vendor/") ? text : withoutLineEnds(text);
      return { contents: [...imports, own].join("\n"), resolveDir: dirname(path) };
    });
  },
};

/** The files of the parts by name. The chunk that the first page is made of has the name of the page's script. */
function filesOf({ outputFiles, metafile }) {
  const nameOf = (path) => relative(target, join(page, path));
  const [[chunk]] = Object.entries(metafile.outputs).filter(([, { inputs }]) => inputs[FIRST]?.bytesInOutput);
  const files = outputFiles.map(({ path, text }) => [relative(target, path), text]);
  const kept = nameOf(chunk) === FIRST ? files : files.filter(([name]) => name !== FIRST);
  return kept.map(([name, text]) => [
    name === nameOf(chunk) ? FIRST : name,
    text.replaceAll(`/${nameOf(chunk)}"`, `/${FIRST}"`),
  ]);
}

const parts = partsOf();
const built = await build({
  ...options, entryPoints: [FIRST, ...parts], outbase: page, outdir: target, splitting: true, format: "esm",
  chunkNames: "chunk-[hash]", plugins: [grouping], metafile: true,
});
const sheets = await build({ ...options, entryPoints: ["page.css"], outdir: target });
rmSync(target, { recursive: true, force: true });
const scripts = filesOf(built).map(async ([name, text]) => [name, await minified(text)]);
for (const [name, text] of [...(await Promise.all(scripts)), ...sheets.outputFiles.map(({ text }) => ["page.css", text])]) {
  mkdirSync(dirname(join(target, name)), { recursive: true });
  writeFileSync(join(target, name), text);
}
for (const name of COPIED) {
  mkdirSync(dirname(join(target, name)), { recursive: true });
  copyFileSync(join(page, name), join(target, name));
}
const { idsOf } = await import(`data:text/javascript,${encodeURIComponent(textOf("message-id.js"))}`);
for (const name of MESSAGES) {
  const messages = Object.entries(JSON.parse(textOf(name))).map(([text, message]) => [...idsOf(text), message]);
  const isAlone = (short) => messages.filter((one) => one[1] === short).length === 1;
  const shorter = Object.fromEntries(messages.map(([long, short, message]) => [isAlone(short) ? short : long, message]));
  if (Object.keys(shorter).length < messages.length) throw new Error(`${name}: two messages have the same id`);
  mkdirSync(dirname(join(target, name)), { recursive: true });
  writeFileSync(join(target, name), JSON.stringify(shorter));
}
// What browsers are sent, so that no server has to compress it: the best quality takes half a second for the editors.
for (const name of readdirSync(target, { recursive: true }).filter((one) => /\.(js|css|json|txt)$/.test(one))) {
  writeFileSync(join(target, `${name}.br`), brotliCompressSync(readFileSync(join(target, name))));
}
