/** The page of the media library: the list of files, the uploads, and the details of a file. */

import { addressTo } from "../addresses.js";
import { useStudio } from "../context.js";
import { t } from "../language.js";
import { List } from "../list/list.js";
import { navigate } from "../router.js";
import { useHeading } from "../site/heading.js";
import { Empty } from "../states.js";
import { offerUndo } from "../store/messages.js";
import { reloadContent } from "../store/requests.js";
import { filesText } from "../text.js";
import { html, useMemo, useState } from "../vendor/preact.js";
import { DeleteQuestion, usageOf } from "./delete-question.js";
import { fileIn } from "./file.js";
import { FilePanel } from "./file-panel.js";
import { MoveDialog } from "./move-dialog.js";
import { removeFile } from "./requests.js";
import { filesOf } from "./resource.js";
import { Uploads } from "./uploads.js";

/**
 * @typedef {import("../list/resource.js").Row} Row
 * @typedef {{name: "move" | "delete", rows: Row[], used?: import("./delete-question.js").Used | null,
 *   end: (ids: string[] | null) => void, fail: (error: any) => void}} Asked  An action on several files that a
 *   dialog asks about.
 */

/** @param {{params: URLSearchParams}} props */
export function MediaPage({ params }) {
  const { model } = useStudio();
  useHeading(model, t`Media`);
  const [asked, ask] = useState(/** @type {Asked | null} */ (null));
  const resource = useMemo(() => filesOf(model, actionsOf(model, ask)), [model]);
  const listed = new URLSearchParams(params);
  listed.delete("file");
  const folder = (params.get("folder") ?? "").replace(/^\/$/, "");
  const opened = params.get("file");
  const mayUpload = model.allows("upload", "upload");
  if (!model.allows("upload", "find")) return html`<${NoList} mayUpload=${mayUpload} />`;
  return html`<${List} resource=${resource} params=${listed}>
      ${mayUpload && html`<${Uploads} folder=${folder} />`}
    <//>
    ${asked && html`<${AskedDialog} asked=${asked} close=${() => ask(null)} />`}
    ${opened && html`<${FilePanel} id=${opened} key=${opened}
      close=${() => navigate(addressTo("media", {}, listed), { unguarded: true })} />`}`;
}

/** The page for users who may not list files. @param {{mayUpload: boolean}} props */
function NoList({ mayUpload }) {
  return html`<div class="page">
    <header class="page-head"><h1 tabindex="-1">${t`Media`}</h1></header>
    ${mayUpload && html`<${Uploads} folder="" />`}
    <${Empty} title=${t`Your role can't list files`}>${mayUpload
      ? t`You can upload files, but not see which files there are.`
      : t`An administrator can grant it with upload: [find] in site.yaml.`}<//>
  </div>`;
}

/**
 * Return the actions on several files that the user may perform.
 * @param {import("../model.js").Model} model
 * @param {(asked: Asked) => void} ask
 * @returns {import("../list/resource.js").BulkAction[]}
 */
function actionsOf(model, ask) {
  if (!model.allows("upload", "destroy")) return [];
  const asking = (/** @type {Asked["name"]} */ name, /** @type {Asked["used"]} */ used) =>
    (/** @type {Row[]} */ rows) =>
      /** @type {Promise<string[] | null>} */ (new Promise((end, fail) => ask({ name, rows, used, end, fail })));
  const all = { concerns: () => true };
  const moving = { ...all, name: "move", label: t`Move`, done: t`moved`, run: asking("move", null) };
  const removing = { ...all, name: "delete", label: t`Delete`, done: t`deleted`, removes: true };
  const remove = async (/** @type {Row[]} */ rows) => {
    const used = await usageOf(rows.map(fileIn));
    return model.isServed && !used ? removeAll(rows) : asking("delete", used)(rows);
  };
  return [...(mayMove(model) ? [moving] : []), { ...removing, run: remove }];
}

/** Return whether the user may move files. @param {import("../model.js").Model} model */
const mayMove = (model) =>
  model.isServed && model.allows("upload", "upload") && model.allows("upload", "destroy");

/** @param {{asked: Asked, close: () => void}} props */
function AskedDialog({ asked: { name, rows, used = null, end, fail }, close }) {
  const { model } = useStudio();
  const cancel = () => {
    end(null);
    close();
  };
  if (name === "move") {
    /** @param {import("./move-dialog.js").Moved} moved */
    const done = ({ ids, text }) => {
      cancel();
      offerUndo(text, ids);
      reloadContent();
    };
    return html`<${MoveDialog} files=${rows.map(fileIn)} close=${cancel} done=${done} />`;
  }
  const subject = rows.length === 1 ? rows[0].title : filesText(rows.length);
  return html`<${DeleteQuestion} ...${{ subject, used, isServed: model.isServed, close: cancel }} confirm=${() => {
      close();
      removeAll(rows).then(end, fail);
    }} />`;
}

/**
 * Delete files one by one. If one can't be deleted, the files before it stay deleted, which can be undone.
 * @param {Row[]} rows
 */
async function removeAll(rows) {
  const ids = [];
  for (const [i, row] of rows.entries()) {
    try {
      ids.push(...(await removeFile(fileIn(row))));
    } catch (/** @type {any} */ error) {
      reloadContent();
      if (ids.length) offerUndo(`${i} deleted`, ids);
      throw Object.assign(error, { about: row.title, done: i ? rows.slice(0, i) : undefined });
    }
  }
  return ids;
}
