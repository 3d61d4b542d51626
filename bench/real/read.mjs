// Reads files of a tree without Bifolio: gray-matter splits off the front matter, js-yaml and smol-toml parse it.
// Takes {root, paths} as JSON on standard input, and prints one line of JSON for each file.
import fs from "node:fs";
import path from "node:path";
import matter from "gray-matter";
import yaml from "js-yaml";
import * as toml from "smol-toml";

// `typed` is what YAML 1.2 makes of a text, `text` has the text of each scalar. The last of two equal keys counts, as in Hugo.
const TYPED = { schema: yaml.CORE_SCHEMA, json: true };
const TEXT = { schema: yaml.FAILSAFE_SCHEMA, json: true };
const MARKDOWN = new Set([".md", ".mdx", ".markdown"]);

function fromYaml(text) {
  return { typed: yaml.load(text, TYPED) ?? {}, text: yaml.load(text, TEXT) ?? {} };
}

function fromToml(text) {
  const values = toml.parse(text);
  return { typed: values, text: values }; // TOML types its own values
}

function fromJson(text) {
  const values = JSON.parse(text);
  return { typed: values, text: values };
}

function readMarkdown(text) {
  let parsed = { typed: {}, text: {} };
  const engine = (parse) => ({ parse: (block) => ((parsed = parse(block)), {}), stringify: String });
  const engines = { yaml: engine(fromYaml), toml: engine(fromToml), json: engine(fromJson) };
  const isToml = /^\uFEFF?\+\+\+\s*$/m.test(text.slice(0, text.indexOf("\n") + 1));
  const options = isToml ? { delimiters: "+++", language: "toml", engines } : { engines };
  const rest = matter(text, options).content; // begins with the blanks behind the closing dashes, if there are any
  const isCut = rest !== "" && !text.slice(0, -rest.length).endsWith("\n");
  const body = isCut ? rest.replace(/^[ \t]*\r?\n/, "") : rest;
  const format = isToml ? "toml" : "yaml";
  return { format, ...parsed, body };
}

function read(file) {
  const text = fs.readFileSync(file, "utf8");
  const ending = path.extname(file);
  if (MARKDOWN.has(ending)) return readMarkdown(text.replace(/^\s*\n(?=---|\+\+\+)/, "")); // as Hugo skips blank lines
  if (ending === ".json") return { format: "json", ...fromJson(text) };
  if (ending === ".toml") return { format: "toml", ...fromToml(text) };
  return { format: "yaml", ...fromYaml(text) };
}

const { root, paths } = JSON.parse(fs.readFileSync(0, "utf8"));
for (const name of paths) {
  let told;
  try {
    told = read(path.join(root, name));
  } catch (error) {
    told = { error: String(error.message).split("\n")[0] };
  }
  fs.writeSync(1, JSON.stringify({ path: name, ...told }) + "\n");
}
