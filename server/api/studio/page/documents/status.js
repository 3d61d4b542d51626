/** Whether a document is published, as a word with a mark. */

import { html } from "../vendor/preact.js";

/** @typedef {"published" | "modified" | "draft"} Status  `modified`: published, with a draft beside it. */

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

/** The statuses that a list can be narrowed to. */
export const STATUS_OPTIONS = Object.entries(WORDS).map(([value, label]) => ({ value, label }));
