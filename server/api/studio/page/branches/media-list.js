/** Displays the media files that a branch has changed, with small previews. */

import { fileContent } from "../api.js";
import { t } from "../language.js";
import { counted } from "../text.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { ACTIONS, Field } from "./change-list.js";

const FOLDER = "content/uploads/";
const DESCRIPTION = ".yaml"; // the end of the path of a file's description
const NOTHING = { documents: new Map(), files: new Map() }; // Descriptions refer to no documents.
const PICTURE = /\.(jpe?g|png|webp|avif|gif|bmp|svg|ico)$/i;

/** @param {{compared: import("./changes.js").Compared, branch: string}} props */
export function MediaList({ compared, branch }) {
  const { media, mediaTotal, to } = compared;
  if (!mediaTotal) return null;
  const files = filesOf(media);
  return html`<section class="branch-media" aria-labelledby="branch-media">
    <h2 id="branch-media" class="branch-media-head">${t`Media files`}</h2>
    <ul class="branch-media-list">${files.map(({ name, action, isDescription, attributes }) => html`<li key=${name}>
      <${Preview} name=${name} at=${action === "delete" ? "" : branch} commit=${to} />
      <span class="branch-media-name">${name}
        ${isDescription && html` <span class="branch-change-kind">${t`Description`}</span>`}</span>${" "}
      <span class=${`changed-action is-${action}`}>${ACTIONS[action]}</span>
      ${Object.keys(attributes).map((one) => html`<${Field} key=${one} name=${one} type=${undefined} known=${NOTHING}
        branch=${branch} difference=${attributes[one]} />`)}
    </li>`)}</ul>
    ${media.length < mediaTotal && html`<p class="hint">
      ${t`${counted(mediaTotal - media.length)} more are not listed.`}</p>`}
  </section>`;
}

/**
 * Return one entry for each file. A description is an entry of its own only if its file is unchanged.
 * @param {import("./changes.js").Compared["media"]} media
 */
function filesOf(media) {
  const byPath = new Map(media.map((one) => [one.path, one]));
  return media.flatMap(({ path, action, attributes }) => {
    const file = path.endsWith(DESCRIPTION) ? path.slice(0, -DESCRIPTION.length) : path;
    const isDescription = file !== path && /\.[^/]+$/.test(file);
    if (isDescription && byPath.has(file)) return [];
    const described = byPath.get(path + DESCRIPTION)?.attributes ?? attributes;
    return [{ name: (isDescription ? file : path).replace(FOLDER, ""), action, isDescription, attributes: described }];
  });
}

/** @param {{name: string, at: string, commit: string}} props  The preview is loaded again if the commit changes. */
function Preview({ name, at, commit }) {
  const [src, setSource] = useState("");
  useEffect(() => {
    if (!PICTURE.test(name)) return undefined;
    const control = new AbortController();
    let url = "";
    fileContent(name, at, control.signal).then((content) => {
      url = URL.createObjectURL(content);
      setSource(url);
    }, () => {}); // a file that can't be read has no preview
    return () => {
      control.abort();
      URL.revokeObjectURL(url);
    };
  }, [name, at, commit]);
  const fail = () => setSource("");
  return html`<span class="branch-media-preview">${src && html`<img src=${src} alt="" onError=${fail} />`}</span>`;
}
