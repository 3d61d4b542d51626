/** The table of panels that can be opened next to a form. panel-address.js stores which one is open. */

import { Icon } from "../icons.js";
import { t } from "../language.js";
import { later } from "../later.js";
import { html, useLayoutEffect, useRef } from "../vendor/preact.js";
import { openPanel } from "./panel-address.js";
import { rightsOf } from "./rights.js";

/**
 * @typedef {object} PanelProps
 * @property {import("./form.js").Subject} subject
 * @property {any} editing  The result of `useEditing`.
 */

/**
 * @typedef {object} Panel
 * @property {string} name  The panel's name in the URL.
 * @property {string} label
 * @property {any} content  A component with the props `PanelProps`.
 * @property {boolean} [wide]  Whether the panel takes the larger part of the window.
 * @property {(subject: import("./form.js").Subject) => boolean} offered  Whether the panel is available for the
 *   document.
 * @property {(subject: import("./form.js").Subject) => boolean} [explained]  Whether the URL opens the panel even if it
 *   is not available, so that it explains why.
 * @property {(subject: import("./form.js").Subject) => boolean} [servedOnly]  Whether the panel would be available for
 *   the document on the live site, but is not in the version that is shown.
 * @property {boolean} [forNew]  Whether the panel is available for a new document.
 */

/**
 * Return whether the user may read the document's file. Files of a past state are not available.
 * @param {import("../model.js").Model} model
 */
export const mayReadFiles = (model) => model.allows("source", "read") && !model.isPast;

/** @type {Panel[]} */
const PANELS = [
  {
    name: "preview",
    label: t`Preview`,
    content: later("preview/panel.js", "Preview"),
    wide: true,
    offered: ({ model, type, id }) => id !== "" && (type.preview !== "" || rightsOf(model, type, false).write),
  },
  {
    name: "compare",
    label: t`Compare`,
    content: later("documents/compare.js", "Compare"),
    offered: ({ id, drafts }) => id !== "" && drafts,
  },
  {
    name: "history",
    label: t`History`,
    content: later("history/panel.js", "History"),
    offered: ({ model, id }) => id !== "" && model.allows("history", "read"),
    explained: ({ id }) => id !== "",
    servedOnly: ({ model, id }) => id !== "" && !model.isServed && model.mayServed("history", "read"),
  },
  {
    name: "file",
    label: t`File`,
    content: later("file/file-panel.js", "FilePanel"),
    offered: ({ model }) => mayReadFiles(model),
    servedOnly: ({ model }) => !model.isServed && model.mayServed("source", "read"),
    forNew: true,
  },
];

/** @param {import("./form.js").Subject} subject @param {boolean} isThere */
const offeredFor = (subject, isThere) => {
  return PANELS.filter((panel) => (isThere || panel.forNew) && panel.offered(subject));
};

/**
 * Return the panel with a name, or null if there is none.
 * @param {import("./form.js").Subject} subject
 * @param {string} name
 * @param {boolean} isThere  Whether the document exists.
 */
export function panelNamed(subject, name, isThere) {
  const panel = PANELS.find((one) => one.name === name && (isThere || one.forNew));
  return panel && (panel.offered(subject) || panel.explained?.(subject)) ? panel : null;
}

/** @param {{subject: import("./form.js").Subject, open: Panel | null, isThere: boolean}} props */
export function PanelButtons({ subject, open, isThere }) {
  return html`<div class="panel-buttons">
    ${offeredFor(subject, isThere).map(({ name, label }) => html`<button class="button quiet" type="button" key=${name}
      id=${`panel-button-${name}`} aria-expanded=${open?.name === name} aria-controls="panel"
      onClick=${() => openPanel(open?.name === name ? "" : name)}>${label}</button>`)}
    <${ServedOnly} labels=${PANELS.filter((panel) => panel.servedOnly?.(subject)).map(({ label }) => label)} />
  </div>`;
}

/** Disabled buttons, and why they are disabled. @param {{labels: string[]}} props */
function ServedOnly({ labels }) {
  if (!labels.length) return null;
  return html`${labels.map((label) => html`<button class="button quiet" type="button" key=${label} aria-disabled="true"
      aria-describedby="panels-off">${label}</button>`)}
    <span class="hint panels-off" id="panels-off">${t`only on the live site`}</span>`;
}

/**
 * The open panel. Escape closes it and returns the focus to its button.
 * @param {{panel: Panel} & PanelProps} props
 */
export function PanelAside({ panel, ...props }) {
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  const close = () => {
    openPanel("");
    document.getElementById(`panel-button-${panel.name}`)?.focus();
  };
  useLayoutEffect(() => heading.current?.focus({ preventScroll: true }), [panel.name]);
  /** @param {KeyboardEvent} event */
  const leave = (event) => event.key === "Escape" && !event.defaultPrevented && close();
  return html`<aside class="panel" id="panel" aria-labelledby="panel-heading" onKeyDown=${leave}>
    <header class="panel-head">
      <h2 id="panel-heading" tabindex="-1" ref=${heading}>${panel.label}</h2>
      <button class="icon-button" type="button" aria-label=${t`Close the panel`} onClick=${close}>
        <${Icon} name="close" />
      </button>
    </header>
    <div class="panel-body"><${panel.content} ...${props} /></div>
  </aside>`;
}
