/** The URL of a document's preview, made from the template for its content type in site.yaml. */

/**
 * @typedef {object} Address
 * @property {string} url  The URL, or "" if it can't be made.
 * @property {string} origin  The origin of the previewed page. It is "null" for pages of this server, which run without
 *   an origin in the frame.
 * @property {string[]} missing  The placeholders for which the document has no value.
 */

/**
 * @param {string} template
 * @param {Record<string, any>} document  The document, as returned by the API.
 * @param {string} status  Either "draft" or "published".
 * @param {string} locale
 * @param {string} branch  The branch that is shown, or "" for the live site.
 * @returns {Address}
 */
export function previewAddress(template, document, status, locale, branch) {
  /** @type {string[]} */
  const missing = [];
  const filled = template.replace(/\{([^{}]*)\}/g, (_, /** @type {string} */ name) => {
    if (name === "branch" && !("branch" in document)) return encodeURIComponent(branch);
    const value = name === "status" ? status : name === "locale" ? locale : document[name];
    const empty = value === null || value === undefined || value === "" || typeof value === "object";
    if (empty) missing.push(name);
    return encodeURIComponent(empty ? "" : String(value));
  });
  const url = new URL(filled, location.origin);
  if (missing.length || !/^https?:$/.test(url.protocol)) return { url: "", origin: "", missing };
  return { url: url.href, origin: url.origin === location.origin ? "null" : url.origin, missing };
}
