/** Displays the changes that a branch makes to the files of content types, settings and migrations. */

import { Differences } from "../file/diff.js";
import { plural, t } from "../language.js";
import { html } from "../vendor/preact.js";

/** @param {{compared: import("./changes.js").Compared}} props */
export function FileList({ compared: { files, filesTotal } }) {
  if (!filesTotal) return null;
  const hidden = filesTotal - files.length;
  return html`<section class="branch-media" aria-labelledby="branch-files">
    <h2 id="branch-files" class="branch-media-head">${t`Content types and settings`}</h2>
    <${Differences} files=${files} />
    ${hidden > 0 && html`<p class="hint">${plural(hidden, {
      one: "{0} changed file is not shown.", other: "{0} changed files are not shown.",
    })}</p>`}
  </section>`;
}
