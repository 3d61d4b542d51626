/** Whether a document is published, as a word with a mark. */

import { html } from "./vendor/preact.js";

const WORDS = { published: "Published", modified: "Modified", draft: "Draft" };
const TITLES = {
  published: "What is published is all there is",
  modified: "Published, with changes that are not",
  draft: "Not published",
};

/** @param {{status: import("./documents.js").Status}} props */
export function StatusMark({ status }) {
  return html`<span class=${`status is-${status}`} title=${TITLES[status]}>${WORDS[status]}</span>`;
}
