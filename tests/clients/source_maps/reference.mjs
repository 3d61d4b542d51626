/**
 * Marks documents as the reference implementation does, by its own code: `reference.mjs CORE UTILS`, the folders
 * that its packages were unpacked to. Reads {schemas, type, documents} as JSON, and writes the marked documents.
 */

import { Module, createRequire } from "node:module";
import { text } from "node:stream/consumers";

const [core, utils] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const resolve = Module._resolveFilename;
// Of all that the packages depend on, this code needs two, and one function of their own.
Module._resolveFilename = (name, ...rest) => {
  if (name === "@strapi/utils") return require.resolve("./utils.cjs");
  return /^[.\/]/.test(name) ? resolve(name, ...rest) : resolve(name, { ...module, paths: module.paths });
};
const module = { id: "reference", filename: import.meta.filename, paths: require.resolve.paths("lodash") };
process.env.REFERENCE_UTILS = utils;
const { createContentSourceMapsService } = require(`${core}/dist/services/content-source-maps.js`);
const { schemas, type, documents } = JSON.parse(await text(process.stdin));
const service = createContentSourceMapsService({ getModel: (uid) => schemas[uid], log: console });
console.log(JSON.stringify(await service.encodeSourceMaps({ data: documents, schema: schemas[type] })));
