/** The publication status of a document, displayed as a word with a symbol. */

import { t } from "../language.js";
import { html } from "../vendor/preact.js";

/** @typedef {"published" | "modified" | "draft"} Status  `modified` means published, with a draft that differs. */

const WORDS = { published: t`Published`, modified: t`Modified`, draft: t`Draft` };
const TITLES = {
  published: t`Published, no draft changes`,
  modified: t`Published, with unpublished changes`,
  draft: t`Not published`,
};

/** @param {{status: Status}} props */
export function StatusMark({ status }) {
  return html`<span class=${`status is-${status}`} title=${TITLES[status]}>${WORDS[status]}</span>`;
}

/** The statuses by which a list can be filtered. */
export const STATUS_OPTIONS = Object.entries(WORDS).map(([value, label]) => ({ value, label }));
