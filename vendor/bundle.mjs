// Bundles the libraries of the studio, once: `make vendor`. Each module beside this one becomes a file in
// server/api/studio/page/vendor/, or in the folder that the command line names, and manifest.json says what of which version, under which licence, is in it.
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { minified } from "./minify.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "../server/api/studio/page/vendor");

/** The packages that something of is in a bundle. */
function packagesOf({ outputs }) {
  const inputs = Object.values(outputs).flatMap((output) => Object.entries(output.inputs));
  const used = inputs.filter(([, { bytesInOutput }]) => bytesInOutput).map(([path]) => path);
  const names = used.map((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]).filter(Boolean);
  return [...new Set(names)].sort();
}

function describe(name) {
  const { version, license } = JSON.parse(readFileSync(join(here, "node_modules", name, "package.json"), "utf8"));
  return { name, version, licence: license };
}

function licenceOf(name) {
  const folder = join(here, "node_modules", name);
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  return `${name}\n\n${file ? readFileSync(join(folder, file), "utf8").trim() : "(see package.json)"}\n`;
}

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
const files = {};
const used = new Set();
for (const entry of readdirSync(here).filter((name) => name.endsWith(".js")).sort()) {
  const made = await build({
    absWorkingDir: here, entryPoints: [entry], bundle: true, format: "esm", target: "es2022",
    legalComments: "none", metafile: true, write: false,
  });
  const text = await minified(made.outputFiles[0].text);
  const packages = packagesOf(made.metafile);
  packages.forEach((name) => used.add(name));
  writeFileSync(join(target, entry), text);
  files[entry] = {
    sha256: createHash("sha256").update(text).digest("hex"),
    packages: packages.map(describe),
  };
}
for (const types of readdirSync(here).filter((name) => name.endsWith(".d.ts"))) {
  copyFileSync(join(here, types), join(target, types));
}
writeFileSync(join(target, "manifest.json"), `${JSON.stringify(files, null, 2)}\n`);
writeFileSync(join(target, "licences.txt"), [...used].sort().map(licenceOf).join(`\n${"-".repeat(80)}\n\n`));
