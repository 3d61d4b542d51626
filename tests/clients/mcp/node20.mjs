// Lets the conformance tests run with Node.js 20, which has no fs.globSync. Only their command `sdk` uses it.
import { register } from "node:module";

const fs = 'export * from "node:fs"; export const globSync = () => [];';
const url = `data:text/javascript,${encodeURIComponent(fs)}`;
const hooks = `export async function resolve(specifier, context, next) {
  const isTheirs = context.parentURL?.includes("/@modelcontextprotocol/conformance/");
  return specifier === "fs" && isTheirs ? { url: ${JSON.stringify(url)}, shortCircuit: true } : next(specifier, context);
}`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
