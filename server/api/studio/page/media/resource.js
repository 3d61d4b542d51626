/** The list resource for the files of the media library. The modules in list/ display it. */

import { addressTo } from "../addresses.js";
import { keyOf, useRequest } from "../store/requests.js";
import { t } from "../language.js";
import { counted, filesText } from "../text.js";
import { html } from "../vendor/preact.js";
import { AlternativeText } from "./alternative-text.js";
import { TABLE, fileIn, fileOf, folderOf, isPicture, sizeText } from "./file.js";
import { FileRows } from "./file-rows.js";
import { Picture } from "./picture.js";
import { readFolders, readPage } from "./requests.js";

/**
 * @typedef {import("../list/resource.js").Row} Row
 * @typedef {import("../list/state.js").ListState} ListState
 */

const FIELDS = [
  ...["name", "url", "alternativeText", "mime", "formats", "size", "width", "height", "createdAt", "updatedAt"],
];
const MOST = 60; // files on a page
const TOP = "/"; // the top folder, as a value of the choice
const USUAL_SORT = "createdAt:desc";

const PICTURES = { mime: { $startsWith: "image/" } };
/** @type {Record<string, object>} */
const TYPES = {
  image: PICTURES,
  video: { mime: { $startsWith: "video/" } },
  audio: { mime: { $startsWith: "audio/" } },
  pdf: { mime: { $eq: "application/pdf" } },
  other: {
    $and: ["image/", "video/", "audio/", "application/pdf"].map((kind) => ({ mime: { $not: { $startsWith: kind } } })),
  },
};
const NO_TEXT = { ...PICTURES, alternativeText: { $null: true } };

/**
 * @param {import("../model.js").Model} model
 * @param {import("../list/resource.js").BulkAction[]} actions
 * @returns {import("../list/resource.js").Resource}
 */
export function filesOf(model, actions) {
  const mayOpen = model.allows("upload", "findOne");
  const address = (/** @type {any} */ params) => addressTo("media", {}, params);
  return {
    name: "media",
    heading: t`Media`,
    countText: filesText,
    selectionLabel: t`Selected files`,
    title: { name: "name", label: t`Name`, type: "", sort: "name", cell: nameCell },
    fixed: [
      { name: "alternativeText", label: t`Alternative text`, type: "", sort: "", cell: (row) => textCell(model, row) },
    ],
    columns: [
      { name: "folder", label: t`Folder`, type: "string", sort: "", cell: (row) => folderOf(fileIn(row)) },
      { name: "mime", label: t`Type`, type: "string", sort: "mime" },
      { name: "size", label: t`Size`, type: "string", sort: "size", cell: (row) => sizeText(fileIn(row).size) },
      { name: "pixels", label: t`Pixels`, type: "string", sort: "width", cell: (row) => pixelsOf(fileIn(row)) },
      { name: "createdAt", label: t`Added`, type: "datetime", sort: "createdAt" },
      { name: "updatedAt", label: t`Changed`, type: "datetime", sort: "updatedAt" },
    ],
    usualColumns: ["size", "createdAt"],
    filters: [],
    choices: choicesOf(model),
    usualSort: USUAL_SORT,
    isSingle: false,
    emptyText: t`No files yet`,
    placeNote: () => "",
    address,
    addressOf: ({ id }, state) => (mayOpen ? address(paramsOf(state, id)) : ""),
    create: () => null,
    links: [],
    actions,
    Rows: FileRows,
    hasColumns: ({ choices }) => choices.view === TABLE,
    query: (state) => queryOf(model, state),
    load: loadRows,
  };
}

/** @param {ListState} state @param {string} id  The documentId of the file whose details are shown. */
function paramsOf({ q, sort, choices, page }, id) {
  const params = new URLSearchParams(Object.entries(choices).filter(([, value]) => value));
  if (q) params.set("q", q);
  if (sort !== USUAL_SORT) params.set("sort", sort);
  if (page > 1) params.set("page", String(page));
  params.set("file", id);
  return params;
}

/** @param {import("../model.js").Model} model @returns {import("../list/resource.js").Choice[]} */
function choicesOf(model) {
  const unused = model.allows("upload", "destroy") ? [{ value: "unused", label: t`Unused` }] : [];
  return [
    { name: "folder", label: t`Folder`, usual: "", narrows: true, options: [], useOptions: useFolders },
    { name: "type", label: t`Type`, usual: "", narrows: true, options: [
      { value: "", label: t`All types` }, { value: "image", label: t`Pictures` }, { value: "video", label: t`Videos` },
      { value: "audio", label: t`Audio` }, { value: "pdf", label: "PDF" }, { value: "other", label: t`Other files` },
    ] },
    { name: "size", label: t`Size`, usual: "", narrows: true, options: [
      { value: "", label: t`All sizes` },
      ...[0.5, 1, 5, 20].map((mb) => ({ value: `${mb}`, label: t`Over ${counted(mb)} MB` })),
    ] },
    { name: "show", label: t`Show`, usual: "", narrows: true, options: [
      { value: "", label: t`All files` }, ...unused, { value: "no-text", label: t`No alternative text` },
    ] },
    { name: "view", label: t`View`, usual: "", options: [
      { value: "", label: t`Grid` }, { value: TABLE, label: t`List` },
    ] },
  ];
}

/** Return the options for the folder. @param {string} chosen */
function useFolders(chosen) {
  const { value = [] } = useRequest("folders", readFolders, { isContent: true, isKept: true });
  const known = value.map(({ path, files }) => {
    return { value: path || TOP, label: `${path || t`Top folder`} (${counted(files)})` };
  });
  const isMissing = chosen && !known.some(({ value: path }) => path === chosen);
  return [{ value: "", label: t`All folders` }, ...known, ...(isMissing ? [{ value: chosen, label: chosen }] : [])];
}

/** @param {import("../model.js").Model} model @param {ListState} state */
function queryOf(model, { q, sort, choices, page }) {
  const { folder, type, size, show } = choices;
  const words = ["name", "alternativeText", "caption"].map((name) => ({ [name]: { $containsi: q } }));
  const all = [
    ...(q ? [{ $or: words }] : []),
    ...(type in TYPES ? [TYPES[type]] : []),
    ...(Number(size) ? [{ size: { $gt: Number(size) * 1000 } }] : []),
    ...(show === "no-text" ? [NO_TEXT] : []),
  ];
  return {
    fields: FIELDS,
    sort,
    filters: all.length ? { $and: all } : {},
    folder: folder || undefined,
    unused: show === "unused" ? true : undefined,
    pagination: { page, pageSize: Math.min(model.pageSize.max, MOST) },
  };
}

/**
 * @param {object} query
 * @param {import("../list/resource.js").Column[]} columns
 * @param {AbortSignal} signal
 */
async function loadRows(query, columns, signal) {
  const { files, ...found } = await readPage(query, signal);
  return { ...found, rows: files.map((file) => ({ id: file.documentId, title: file.name, values: file })) };
}

/** @param {Row} row */
const nameCell = (row) => html`<span class="media-cell"><${Picture} file=${fileOf(fileIn(row))} whole />
  <span class="media-name">${row.title}</span></span>`;

/** @param {import("../model.js").Model} model @param {Row} row */
function textCell(model, row) {
  const file = fileIn(row);
  if (!isPicture(file) || !model.allows("upload", "upload")) return file.alternativeText ?? "";
  return html`<${AlternativeText} file=${file} key=${keyOf(file.documentId, file.updatedAt)} />`;
}

/** @param {any} file */
const pixelsOf = ({ width, height }) => (width && height ? `${width} × ${height}` : "");
