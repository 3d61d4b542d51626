/** The server's public REST API, the same that everybody has (GET /openapi.json describes it). */

const ROOT = new URL("../../../", import.meta.url);
const OWN = { "Quire-Studio": "1", "Strapi-Response-Format": "v5" }; // whatever `api.format` of the site is

/**
 * What is wrong, as the server says it, or with the connection (status 0).
 */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {any} [details]
   */
  constructor(status, message, details = {}) {
    super(message);
    this.status = status;
    this.details = details;
  }
}

/** @type {Set<() => void>} */
const onEnd = new Set();

/**
 * Call a function whenever the server no longer knows who is here; returns what undoes that.
 * @param {() => void} listener
 */
export function whenSessionEnds(listener) {
  onEnd.add(listener);
  return () => {
    onEnd.delete(listener);
  };
}

/**
 * @typedef {object} Answer
 * @property {any} data  The `data` of the body, null where there is none.
 * @property {any} meta
 * @property {any} body  The whole body.
 * @property {string} etag
 */

/**
 * @typedef {object} Options
 * @property {string} [method]
 * @property {object} [query]  Parameters, see `queryString`.
 * @property {any} [body]  What is sent as JSON; a FormData as it is.
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 */

/**
 * Ask the server. Throws ApiError for any answer that is an error, and AbortError where `signal` says so.
 * @param {string} path  From the site's root, such as "api/articles".
 * @param {Options} [options]
 * @returns {Promise<Answer>}
 */
export async function ask(path, { method = "GET", query, body, headers = {}, signal } = {}) {
  const url = new URL(path.replace(/^\//, ""), ROOT);
  url.search = query ? queryString(query) : url.search;
  const json = body !== undefined && !(body instanceof FormData);
  const response = await fetch(url, {
    method,
    signal,
    headers: { ...OWN, ...(json ? { "Content-Type": "application/json" } : {}), ...headers },
    body: json ? JSON.stringify(body) : body,
  }).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server can't be reached");
  });
  const answered = await read(response);
  if (response.ok) {
    const etag = response.headers.get("ETag") ?? "";
    return { data: answered?.data ?? null, meta: answered?.meta ?? {}, body: answered, etag };
  }
  if (response.status === 401 && !path.startsWith("studio/")) onEnd.forEach((listener) => listener());
  throw new ApiError(response.status, messageOf(response, answered), answered?.error?.details);
}

/** @param {Response} response */
async function read(response) {
  const text = await response.text();
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null; // a proxy's page, say
  }
}

/**
 * @param {Response} response
 * @param {any} answered
 */
function messageOf(response, answered) {
  const wait = Number(response.headers.get("Retry-After"));
  if (response.status === 429) return `That was tried too often. Try again in ${inWords(wait || 60)}.`;
  return answered?.error?.message || `The server answered ${response.status}`;
}

/** @param {number} seconds */
function inWords(seconds) {
  const minutes = Math.ceil(seconds / 60);
  return minutes > 1 ? `${minutes} minutes` : "a minute";
}

/**
 * Parameters in bracket notation: {sort: "title", filters: {title: {$eq: "x"}}}.
 * @param {object} value
 */
export function queryString(value) {
  return flat(value, "").map(([name, text]) => `${name}=${encodeURIComponent(text)}`).join("&");
}

/**
 * @param {any} value
 * @param {string} name
 * @returns {[string, string][]}
 */
function flat(value, name) {
  if (value === undefined || value === null || value === "") return [];
  if (typeof value !== "object") return [[name, String(value)]];
  return Object.entries(value).flatMap(([key, inner]) => {
    const part = encodeURIComponent(key).replaceAll("%24", "$");
    return flat(inner, name ? `${name}[${part}]` : part);
  });
}
