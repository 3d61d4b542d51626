/** The publication status of a document, displayed as a word with a symbol. */

import { html } from "../vendor/preact.js";

/** @typedef {"published" | "modified" | "draft"} Status  `modified` means published, with a draft that differs. */

const WORDS = { published: "Published", modified: "Modified", draft: "Draft" };
const TITLES = {
  published: "Published, no draft changes",
  modified: "Published, with unpublished changes",
  draft: "Not published",
};

/** @param {{status: Status}} props */
export function StatusMark({ status }) {
  return html`<span class=${`status is-${status}`} title=${TITLES[status]}>${WORDS[status]}</span>`;
}

/** The statuses by which a list can be filtered. */
export const STATUS_OPTIONS = Object.entries(WORDS).map(([value, label]) => ({ value, label }));
