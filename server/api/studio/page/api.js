/**
 * Client for the server's public REST API (see GET /openapi.json). All requests use the version of the site that is
 * shown, unless their query names another one.
 */

import { SITE } from "./base.js";
import { connectionFound, connectionLost } from "./connection/connection.js";
import { parseJson, writeJson } from "./json.js";
import { plural, t } from "./language.js";
import { currentVersion } from "./router.js";

const OWN = { "Bifolio-Studio": "1", "Strapi-Response-Format": "v5" }; // whatever `api.format` of the site is
const READ_AT = /^\/?(api\/|search|overview)/;
const WRITTEN_TO_BRANCH = /^\/?(api\/|batch$|history\/.*\/restore$)/;
const OF_PEOPLE = /^\/?api\/(auth|connect|users)/;
const ROLE = "Bifolio-Role"; // the header of reads that show what a role would see
const OF_PROXIES = [502, 503, 504]; // what they say of a server that does not answer them

/** An error response of the server, or a failed connection (status 0). */
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

/** Return the error for a server that does not respond. */
export const unreachable = () => new ApiError(0, t`The server can't be reached`);

/** @type {Set<() => void>} */
const onEnd = new Set();

/**
 * Call a function whenever the server no longer accepts the session. Returns a function that cancels this.
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
 * @property {any} data  The `data` of the body, or null if it has none.
 * @property {any} meta
 * @property {any} body  The whole body.
 * @property {string} etag
 * @property {string} undo  The id with which the write can be undone, or "" if it can't be undone.
 */

/**
 * @typedef {object} Options
 * @property {string} [method]
 * @property {object} [query]  The query parameters, see `queryString`.
 * @property {any} [body]  The body, which is sent as JSON. A FormData is sent unchanged.
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 * @property {boolean} [keepalive]  Whether the request is sent even if the page is closed.
 * @property {(url: URL, init: RequestInit) => Promise<Response>} [via]  Sends the request instead of `fetch`.
 * @property {boolean} [exact]  Whether numbers that JavaScript can't represent exactly are returned as `Exact`.
 */

/**
 * Send a request to the server. Throws ApiError if the response is an error, or AbortError if `signal` aborts it.
 * @param {string} path  The path relative to the site's root, such as "api/articles".
 * @param {Options} [options]
 * @returns {Promise<Answer>}
 */
export async function ask(path, options = {}) {
  const { method = "GET", query, body, headers = {}, exact = false, via = fetch, ...how } = options;
  const url = new URL(path.replace(/^\//, ""), SITE);
  url.search = query ? queryString(query) : url.search;
  for (const [name, value] of Object.entries(versionParams(path, method))) {
    if (!url.searchParams.has(name)) url.searchParams.set(name, value);
  }
  const { as } = currentVersion();
  if (as && method !== "GET" && !path.startsWith("studio/")) {
    throw new ApiError(403, t`You see the site as the role ${as}. It is read-only`);
  }
  const json = body !== undefined && !(body instanceof FormData);
  const { response, answered } = await send(url, {
    method,
    ...how,
    headers: {
      ...OWN,
      ...(as && method === "GET" ? { [ROLE]: encodeURIComponent(as) } : {}),
      ...(json ? { "Content-Type": "application/json" } : {}),
      ...headers,
    },
    body: json ? writeJson(body) : body,
  }, exact ? parseJson : JSON.parse, via);
  if (response.ok) {
    const etag = response.headers.get("ETag") ?? "";
    const undo = response.headers.get("Bifolio-Undo") ?? "";
    return { data: answered?.data ?? null, meta: answered?.meta ?? {}, body: answered, etag, undo };
  }
  if (response.status === 401 && !path.startsWith("studio/")) onEnd.forEach((listener) => listener());
  throw new ApiError(response.status, messageOf(response, answered), answered?.error?.details);
}

/**
 * Return the parameters that select the version of the site: `at` for reads, `branch` for writes. Some paths accept
 * none.
 * @param {string} path
 * @param {string} method
 * @returns {Record<string, string>}
 */
function versionParams(path, method) {
  const { at, branch } = currentVersion();
  const version = at || branch;
  if (!version || OF_PEOPLE.test(path)) return {};
  if (method === "GET") return READ_AT.test(path) ? { at: version } : {};
  return branch && WRITTEN_TO_BRANCH.test(path) ? { branch } : {};
}

/**
 * Return the URL under which the browser can load a file of the site.
 * @param {string} url  The URL as returned by the API.
 * @param {string} [version]  The time of the file's last change. The browser then shows no older cached file.
 */
export function fileAddress(url, version = "") {
  const address = new URL(url.replace(/^\//, ""), SITE);
  if (version && address.origin === SITE.origin && !address.search) address.searchParams.set("v", version);
  const { at, branch } = currentVersion();
  if ((at || branch) && address.origin === SITE.origin) address.searchParams.set("at", at || branch);
  return address.href;
}

/**
 * Return the content of a media file on a branch, or on the live site if `at` is "". An image that the browser loads by
 * itself is not signed in, so it could only show what the public may read. Throws an error if the file can't be read.
 * @param {string} path  The path relative to content/uploads.
 * @param {string} at
 * @param {AbortSignal} signal
 */
export async function fileContent(path, at, signal) {
  const address = new URL(`uploads/${path.split("/").map(encodeURIComponent).join("/")}`, SITE);
  if (at) address.searchParams.set("at", at);
  const response = await fetch(address, { headers: OWN, signal });
  if (!response.ok) throw new ApiError(response.status, t`The server returned status ${response.status}`);
  return response.blob();
}

/**
 * Return the response to a request, and its body. Throws ApiError if the server is not reachable, which a proxy
 * reports as 502, 503 or 504.
 * @param {URL} url
 * @param {RequestInit} init
 * @param {(text: string) => any} parse
 * @param {(url: URL, init: RequestInit) => Promise<Response>} via
 */
async function send(url, init, parse, via) {
  const sentAt = performance.now();
  try {
    const response = await via(url, init);
    const answered = parsed(await response.text(), parse);
    if (!OF_PROXIES.includes(response.status) || answered?.error) {
      connectionFound(sentAt);
      return { response, answered };
    }
  } catch (/** @type {any} */ error) {
    if (error.name === "AbortError") throw error;
  }
  connectionLost();
  throw unreachable();
}

/** @param {string} text @param {(text: string) => any} parse */
function parsed(text, parse) {
  try {
    return text ? parse(text) : null;
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
  if (response.status === 429) return t`Too many attempts. Try again in ${inWords(wait || 60)}.`;
  return answered?.error?.message || t`The server returned status ${response.status}`;
}

/** @param {number} seconds */
function inWords(seconds) {
  const minutes = Math.ceil(seconds / 60);
  return minutes > 1 ? plural(minutes, { one: "{0} minute", other: "{0} minutes" }) : t`a minute`;
}

/**
 * Return the parameters in bracket notation: {sort: "title", filters: {title: {$eq: "x"}}}.
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
