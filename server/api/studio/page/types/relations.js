/** A picture of how a content type or component is connected to others. Each of them is a link in the picture. */

import { addressTo } from "../addresses.js";
import { t } from "../language.js";
import { Link } from "../router.js";
import { html } from "../vendor/preact.js";
import { relationText, shortName } from "./schemas.js";

const [ROW, BOX, WIDTH] = [44, 112, 440];

/**
 * @typedef {import("./schemas.js").Schema} Schema
 * @typedef {{uid: string, text: string}} Connection
 */

/**
 * Return the connections of a schema, also those that are defined in other schemas.
 * @param {Schema} schema
 * @param {Schema[]} schemas
 */
function connectionsOf(schema, schemas) {
  /** @type {Connection[]} */
  const found = [];
  for (const [name, { type, target, relation, component, components }] of Object.entries(schema.attributes)) {
    if (type === "relation" && target) found.push({ uid: target, text: `${name}, ${relationText(relation)}` });
    for (const uid of component ? [component] : components ?? []) found.push({ uid, text: name });
  }
  for (const other of schemas) {
    for (const [name, attribute] of Object.entries(other.attributes)) {
      const { target, component, components, inversedBy, mappedBy } = attribute;
      const leads = [target, component, ...(components ?? [])].includes(schema.uid);
      if (leads && other !== schema && !inversedBy && !mappedBy) found.push({ uid: other.uid, text: t`${name} of it` });
    }
  }
  return found;
}

/** @param {{schema: Schema, schemas: Schema[]}} props */
export function Relations({ schema, schemas }) {
  const connections = connectionsOf(schema, schemas);
  if (!connections.length) return html`<p class="hint">${t`It is not connected to other types.`}</p>`;
  const height = connections.length * ROW;
  const middle = height / 2;
  return html`<svg class="types-picture" viewBox=${`0 0 ${WIDTH} ${height}`} role="group"
    aria-label=${t`Connections of ${schema.label}`}>
    ${connections.map(({ text }, index) => {
      const y = index * ROW + ROW / 2;
      const line = `M ${BOX} ${middle} C 132 ${middle} 114 ${y} 136 ${y} H ${WIDTH - BOX}`;
      return html`<g key=${index} aria-hidden="true"><path d=${line} />
        <text x="140" y=${y - 5}>${text}</text></g>`;
    })}
    <g aria-hidden="true"><rect x="1" y=${middle - 16} width=${BOX} height="32" rx="6" class="is-own" />
      <text x=${BOX / 2} y=${middle + 5} text-anchor="middle">${short(schema.label)}</text></g>
    ${connections.map(({ uid, text }, index) => {
      const other = schemas.find((one) => one.uid === uid);
      const y = index * ROW + ROW / 2;
      const box = html`<rect x=${WIDTH - BOX - 1} y=${y - 16} width=${BOX} height="32" rx="6" />
        <text x=${WIDTH - BOX / 2} y=${y + 5} text-anchor="middle">${short(other?.label ?? shortName(uid))}</text>`;
      if (!other) return html`<g key=${index}>${box}</g>`;
      return html`<${Link} key=${index} to=${addressTo("types", {}, { type: other.name })}
        aria-label=${`${other.label}: ${text}`}>${box}<//>`;
    })}
  </svg>`;
}

/** @param {string} label */
const short = (label) => (label.length > 13 ? `${label.slice(0, 12)}…` : label);
