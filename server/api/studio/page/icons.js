/** The icons, drawn with lines in the color of the surrounding text. */

import { html } from "./vendor/preact.js";

export const PATHS = {
  menu: "M3 6h14M3 10h14M3 14h14",
  close: "M5 5l10 10M15 5L5 15",
  settings: "M3 6h7M14 6h3M10 6a2 2 0 1 0 4 0 2 2 0 1 0-4 0M3 14h3M10 14h7M6 14a2 2 0 1 0 4 0 2 2 0 1 0-4 0",
  leave: "M8 4H5a1 1 0 0 0-1 1v10a1 1 0 0 0 1 1h3M12 13l3-3-3-3M15 10H8",
  search: "M9 15a6 6 0 1 0 0-12 6 6 0 0 0 0 12ZM13.5 13.5 17 17",
  up: "M10 16V5M5.5 9.5 10 5l4.5 4.5",
  down: "M10 4v11M5.5 10.5 10 15l4.5-4.5",
  left: "M12 5l-5 5 5 5",
  plus: "M10 4v12M4 10h12",
  grip: "M7.5 5v.01M12.5 5v.01M7.5 10v.01M12.5 10v.01M7.5 15v.01M12.5 15v.01",
  right: "M8 5l5 5-5 5",
  bold: "M6.5 4h4.5a3 3 0 0 1 0 6H6.5ZM6.5 10h5.5a3 3 0 0 1 0 6H6.5Z",
  italic: "M9 4h5M6 16h5M11.5 4l-3 12",
  underline: "M6 3.5V9a4 4 0 0 0 8 0V3.5M5 17h10",
  strikethrough: "M14 6.5C13.5 5 12 4 10 4 7.5 4 6 5.3 6 7s1.5 2.5 4 3 4 1.3 4 3-1.5 3-4 3-4-1-4.3-2.5M3 10h14",
  code: "M7 6l-4 4 4 4M13 6l4 4-4 4",
  bullets: "M8 5h9M8 10h9M8 15h9M4 5v.01M4 10v.01M4 15v.01",
  numbers: "M9 5h8M9 10h8M9 15h8M3.5 3.5 4.5 3v4M3 12.5c1-.8 2-.3 2 .5S3 15 3 16h2",
  link: "M8.5 11.5a3 3 0 0 0 4.2 0l3-3a3 3 0 0 0-4.2-4.2l-1 1M11.5 8.5a3 3 0 0 0-4.2 0l-3 3a3 3 0 0 0 4.2 4.2l1-1",
  picture: "M3 4h14v12H3ZM3 13.5l4-4 4 4 2.5-2.5 3.5 3.5M13 7.5v.01",
  undo: "M7 5 3.5 8.5 7 12M3.5 8.5H11a4 4 0 0 1 0 8H8",
  redo: "M13 5l3.5 3.5L13 12M16.5 8.5H9a4 4 0 0 0 0 8h3",
  heading: "M5 4v12M15 4v12M5 10h10",
  quote: "M4 4v12M8 6h9M8 10h9M8 14h6",
  reload: "M15.5 8A6 6 0 1 0 16 11.5M16 4v4h-4",
  branch: "M6 7v6M4 5a2 2 0 1 0 4 0 2 2 0 1 0-4 0M4 15a2 2 0 1 0 4 0 2 2 0 1 0-4 0M12 6a2 2 0 1 0 4 0 2 2 0 1 0-4 0" +
    "M14 8q0 3-8 5",
  check: "M4.5 10.5l3.5 3.5 7.5-8",
  expand: "M6.5 8 10 4.5 13.5 8M6.5 12l3.5 3.5 3.5-3.5",
  out: "M11 4h5v5M16 4l-7 7M8 5H5a1 1 0 0 0-1 1v9a1 1 0 0 0 1 1h9a1 1 0 0 0 1-1v-3",
};

/** @param {{name: keyof typeof PATHS}} props */
export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true" fill="none" stroke="currentColor"
    stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round"><path d=${PATHS[name]} /></svg>`;
}
