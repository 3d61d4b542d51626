/** What a list shows, as its address says it: search, filters, sort, locale, status, page. */

/**
 * A condition on an attribute: `path` is its name, or that of a component and of an attribute in it, with a dot.
 * @typedef {{path: string, operator: string, value: string}} Condition
 */

/**
 * @typedef {object} ListState
 * @property {string} q
 * @property {Condition[]} conditions
 * @property {string} sort  An attribute, or one of what a relation leads to, with its direction: "author.name:asc".
 * @property {string} locale  "" for the default one.
 * @property {"" | import("./documents.js").Status} status
 * @property {number} page
 */

export const NEWEST = "updatedAt:desc";

/** @param {URLSearchParams} params @returns {ListState} */
export function readState(params) {
  return {
    q: params.get("q") ?? "",
    conditions: params.getAll("filter").flatMap(readCondition),
    sort: params.get("sort") ?? NEWEST,
    locale: params.get("locale") ?? "",
    status: /** @type {ListState["status"]} */ (params.get("status") ?? ""),
    page: Math.max(Math.trunc(Number(params.get("page"))) || 1, 1),
  };
}

/**
 * The parameters of a state; what is as it would be anyway is left out.
 * @param {ListState} state
 */
export function writeState({ q, conditions, sort, locale, status, page }) {
  const params = new URLSearchParams();
  if (q) params.set("q", q);
  for (const { path, operator, value } of conditions) params.append("filter", `${path}:${operator}:${value}`);
  if (sort !== NEWEST) params.set("sort", sort);
  if (locale) params.set("locale", locale);
  if (status) params.set("status", status);
  if (page > 1) params.set("page", String(page));
  return params;
}

/** @param {string} text @returns {Condition[]} */
function readCondition(text) {
  const [path, operator, ...value] = text.split(":");
  return operator ? [{ path, operator, value: value.join(":") }] : [];
}
