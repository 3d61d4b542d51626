/** A file of the media library, as lists and forms store it. */

import { counted } from "../language.js";

/**
 * @typedef {{documentId: string, __id: number, __title: string, __alt: string, __preview: string,
 *   __url: string, __version: string}} Media  `__version` in a URL bypasses caches.
 */

/** The value of the choice "view" for a table of files; otherwise, they are shown as a grid. */
export const TABLE = "list";

/**
 * Return the file, as returned by the API, of a row in a list of files.
 * @param {import("../list/resource.js").Row} row
 * @returns {any}
 */
export const fileIn = (row) => row.values;

/** Convert a file, as returned by the API. @param {any} file @returns {Media} */
export function fileOf(file) {
  const small = file.formats?.thumbnail?.url ?? file.url;
  return {
    documentId: file.documentId,
    __id: file.id,
    __title: file.name,
    __alt: file.alternativeText ?? "",
    __url: file.url,
    __version: file.updatedAt ?? "",
    __preview: isPicture(file) ? small : "",
  };
}

/** @param {{mime?: string}} file */
export const isPicture = ({ mime }) => String(mime).startsWith("image/");

/** Return the folder of a file, such as "ships/2024", or "" for the top folder. @param {{url: string}} file */
export function folderOf({ url }) {
  const path = new URL(url, "http://site").pathname.replace(/^.*?\/uploads\//, "");
  return decodeURIComponent(path.split("/").slice(0, -1).join("/"));
}

/** Return the name that a file has in its folder. @param {{url: string}} file */
export const fileNameOf = ({ url }) => decodeURIComponent(new URL(url, "http://site").pathname.split("/").pop() ?? "");

/** Return a size in words. @param {number} kilobytes */
export function sizeText(kilobytes) {
  if (kilobytes < 1) return `${Math.max(1, Math.round(kilobytes * 1000))} B`;
  const [value, unit] = kilobytes < 1000 ? [kilobytes, "kB"] : [kilobytes / 1000, "MB"];
  return `${counted(value >= 10 ? Math.round(value) : Math.round(value * 10) / 10)} ${unit}`;
}
