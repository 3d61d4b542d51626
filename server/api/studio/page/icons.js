/** The icons: strokes in the colour of the text beside them. */

import { html } from "./vendor/preact.js";

const PATHS = {
  menu: "M3 6h14M3 10h14M3 14h14",
  close: "M5 5l10 10M15 5L5 15",
  leave: "M8 4H5a1 1 0 0 0-1 1v10a1 1 0 0 0 1 1h3M12 13l3-3-3-3M15 10H8",
  search: "M9 15a6 6 0 1 0 0-12 6 6 0 0 0 0 12ZM13.5 13.5 17 17",
  up: "M10 16V5M5.5 9.5 10 5l4.5 4.5",
  down: "M10 4v11M5.5 10.5 10 15l4.5-4.5",
  left: "M12 5l-5 5 5 5",
  plus: "M10 4v12M4 10h12",
  grip: "M7.5 5v.01M12.5 5v.01M7.5 10v.01M12.5 10v.01M7.5 15v.01M12.5 15v.01",
  right: "M8 5l5 5-5 5",
};

/** @param {{name: keyof typeof PATHS}} props */
export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true" fill="none" stroke="currentColor"
    stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round"><path d=${PATHS[name]} /></svg>`;
}
