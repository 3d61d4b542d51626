/** The state of a list, as stored in the URL: search, filters, sort order, choices and page. */

/**
 * A condition for an attribute. `path` is the attribute's name. For an attribute in a component, it is both names with
 * a dot.
 * @typedef {{path: string, operator: string, value: string}} Condition
 */

/**
 * @typedef {object} ListState
 * @property {string} q
 * @property {Condition[]} conditions
 * @property {string} sort  An attribute, or a related document's attribute, with the direction: "author.name:asc".
 * @property {Record<string, string>} choices  The selected values by the name of the choice. "" is the default value.
 * @property {number} page
 */

/** @typedef {Pick<import("./resource.js").Resource, "choices" | "usualSort">} Described */

/**
 * @param {Described} resource
 * @param {URLSearchParams} params
 * @returns {ListState}
 */
export function readState({ choices, usualSort }, params) {
  return {
    q: params.get("q") ?? "",
    conditions: params.getAll("filter").flatMap(readCondition),
    sort: params.get("sort") ?? usualSort,
    choices: Object.fromEntries(choices.map(({ name }) => [name, params.get(name) ?? ""])),
    page: Math.max(Math.trunc(Number(params.get("page"))) || 1, 1),
  };
}

/**
 * Return the URL parameters for a state. Default values are left out.
 * @param {Described} resource
 * @param {ListState} state
 */
export function writeState({ usualSort }, { q, conditions, sort, choices, page }) {
  const params = new URLSearchParams();
  if (q) params.set("q", q);
  for (const { path, operator, value } of conditions) params.append("filter", `${path}:${operator}:${value}`);
  if (sort !== usualSort) params.set("sort", sort);
  for (const [name, value] of Object.entries(choices)) if (value) params.set(name, value);
  if (page > 1) params.set("page", String(page));
  return params;
}

/** @param {string} text @returns {Condition[]} */
function readCondition(text) {
  const [path, operator, ...value] = text.split(":");
  return operator ? [{ path, operator, value: value.join(":") }] : [];
}
