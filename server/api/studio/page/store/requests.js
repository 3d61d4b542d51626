/**
 * The store of requests for data that pages show: pending requests and responses.
 *
 * - Components that request the same data share one request. It is aborted when all of them have been removed.
 * - While a component requests other data, it continues to show the previous data.
 * - When the server is reachable again after an outage, all shown data is requested again.
 * - Some responses are kept after their page is left, so that the Back button shows them immediately. The next write
 *   removes them.
 */

import { whenBack } from "../connection/connection.js";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";

const MAX_KEPT = 20; // answers that no component shows

/**
 * @typedef {object} Entry
 * @property {(signal: AbortSignal) => Promise<any>} load
 * @property {any} [value]  The latest response.
 * @property {any} [error]  The error of the latest request, if it failed.
 * @property {AbortController | null} underWay
 * @property {Promise<void>} ended  Resolves when the latest request has ended.
 * @property {boolean} isContent  Whether a write to content may change the response.
 * @property {boolean} isLate  Whether other requests go first.
 * @property {Set<() => void>} listeners  The listeners of the components that show it.
 */

/** @type {Map<string, Entry>} */
const entries = new Map();
/** @type {WeakMap<object, number>} */
const numbers = new WeakMap();
let lastNumber = 0;

/**
 * @template T
 * @typedef {object} Requested
 * @property {T} [value]  The response. While another one is being requested, this is the previous response.
 * @property {any} [error]
 * @property {boolean} loading
 * @property {() => Promise<void>} reload  Request the data again, because the response may have changed.
 * @property {() => Promise<void>} retry  Request the data again, unless a request is pending.
 * @property {(more: (value: T, signal: AbortSignal) => Promise<T>) => Promise<void>} extend  Replace the response with
 *   one that is derived from it.
 */

/**
 * @typedef {object} RequestOptions
 * @property {number} [delayMs]  How long to wait before sending the request, for example until the user stops typing.
 * @property {number} [everyMs]  The interval at which to send the request again while the tab is shown.
 * @property {boolean} [isContent]  Whether to send the request again after a write to content.
 * @property {boolean} [isKept]  Whether to keep the response after the page is left.
 * @property {boolean} [isLate]  Whether to wait for the requests of other components that are pending, because the user
 *   does not need the response at once.
 */

/**
 * Request data while a component is shown, and return the current state of the response.
 * @template T
 * @param {string} key  Identifies the request; "" means no request. Requests with equal keys are sent only once.
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {RequestOptions} [options]
 * @returns {Requested<T>}
 */
export function useRequest(key, load, options = {}) {
  const { delayMs = 0, everyMs = 0, isContent = false, isKept = false, isLate = false } = options;
  const [, render] = useState(0);
  const shown = useRef(/** @type {{value?: T, error?: any}} */ ({}));
  // An effect would only run after the next paint.
  useLayoutEffect(() => {
    if (!key) return undefined;
    const entry = entries.get(key) ?? added(key, load);
    const listener = () => render((count) => count + 1);
    const isShown = entry.listeners.size > 0 && entry.value !== undefined;
    entry.listeners.add(listener);
    Object.assign(entry, { load, isContent, isLate });
    const start = () => void (entry.listeners.size && retry(entry));
    const begin = () => void (isShown || (isLate ? afterOthers().then(start) : retry(entry)));
    const timer = delayMs ? setTimeout(begin, delayMs) : begin();
    listener();
    return () => {
      clearTimeout(timer);
      entry.listeners.delete(listener);
      if (!entry.listeners.size) leave(key, entry, isKept);
    };
  }, [key]);
  useEffect(() => (key && everyMs ? repeat(key, everyMs, isLate) : undefined), [key, everyMs]);

  const entry = entries.get(key);
  const hasEnded = entry !== undefined && (entry.value !== undefined || Boolean(entry.error));
  if (!key) shown.current = {};
  else if (hasEnded) shown.current = answerOf(entry, shown.current.value);
  return {
    ...shown.current,
    loading: Boolean(key) && (!hasEnded || Boolean(entry.underWay) || entry.error?.status === 0),
    reload: useCallback(() => withEntry(key, (one) => send(one, one.load)), [key]),
    retry: useCallback(() => withEntry(key, retry), [key]),
    extend: useCallback(
      (/** @type {(value: T, signal: AbortSignal) => Promise<T>} */ more) =>
        withEntry(key, (one) => send(one, (signal) => more(one.value, signal))),
      [key],
    ),
  };
}

/**
 * Return a list that is requested page by page. Each page is appended to the previous ones.
 * @template T
 * @param {string} key
 * @param {(page: number, signal: AbortSignal) => Promise<{items: T[], pages: number}>} loadPage
 * @returns {{items?: T[], hasMore: boolean, error?: any, more: () => void, retry: () => void}}
 */
export function usePages(key, loadPage) {
  const load = async (/** @type {number} */ page, /** @type {AbortSignal} */ signal) => {
    return { ...(await loadPage(page, signal)), page };
  };
  const { value, error, extend, retry } = useRequest(key, (signal) => load(1, signal));
  const more = () => void extend(async ({ items, page }, signal) => {
    const next = await load(page + 1, signal);
    return { ...next, items: [...items, ...next.items] };
  });
  return { items: value?.items, hasMore: value ? value.page < value.pages : false, error, more, retry };
}

/**
 * Return a key for some values. Equal strings have the same key; objects only if they are identical.
 * @param {any[]} values
 */
export function keyOf(...values) {
  return values.map((value) => {
    if (value === null || typeof value !== "object") return String(value);
    if (!numbers.has(value)) numbers.set(value, ++lastNumber);
    return `#${numbers.get(value)}`;
  }).join(" ");
}

/** Request data again that a write may have changed. Delete such responses if no component shows them. */
export function reloadContent() {
  for (const [key, entry] of [...entries]) {
    if (!entry.isContent) continue;
    if (entry.listeners.size) send(entry, entry.load);
    else entries.delete(key);
  }
}

/** @param {string} key @param {Entry["load"]} load @returns {Entry} */
function added(key, load) {
  /** @type {Entry} */
  const entry = {
    load, underWay: null, ended: Promise.resolve(), isContent: false, isLate: false, listeners: new Set(),
  };
  entries.set(key, entry);
  return entry;
}

/**
 * Return what to show after a request has ended. If the server is not reachable, the shown data stays.
 * @param {Entry} entry
 * @param {any} before  The value that is shown.
 */
function answerOf({ value, error }, before) {
  if (error?.status !== 0) return { value, error };
  const last = value ?? before;
  return { value: last, error: last === undefined ? error : undefined };
}

/** @param {string} key @param {(entry: Entry) => Promise<void>} act */
function withEntry(key, act) {
  const entry = entries.get(key);
  return entry ? act(entry) : Promise.resolve();
}

/** @param {Entry} entry */
const retry = (entry) => (entry.underWay ? entry.ended : send(entry, entry.load));

/** Resolves when the requests that components have begun by now have ended, without those that are late themselves. */
async function afterOthers() {
  await null; // The other components on the page begin their requests in the same turn.
  const others = [...entries.values()].filter(({ isLate, underWay }) => !isLate && underWay);
  await Promise.all(others.map(({ ended }) => ended));
}

/**
 * Send a request, replacing a pending one. Resolves when it has ended, whether or not it succeeded.
 * @param {Entry} entry
 * @param {Entry["load"]} load
 */
function send(entry, load) {
  entry.underWay?.abort();
  const controller = (entry.underWay = new AbortController());
  /** @param {Partial<Entry>} part */
  const end = (part) => {
    if (entry.underWay !== controller) return; // Another one was sent since, or no component waits any more.
    Object.assign(entry, part, { underWay: null });
    notify(entry);
  };
  entry.ended = load(controller.signal).then(
    (value) => end({ value, error: undefined }),
    (error) => end({ error }),
  );
  notify(entry);
  return entry.ended;
}

/** @param {Entry} entry */
const notify = (entry) => [...entry.listeners].forEach((listener) => listener());

/** @param {string} key @param {Entry} entry @param {boolean} isKept */
function leave(key, entry, isKept) {
  entry.underWay?.abort();
  entry.underWay = null;
  if (entries.get(key) === entry) entries.delete(key);
  if (!isKept || entry.value === undefined || entry.error) return;
  entries.set(key, entry); // as the latest of those that are kept
  const kept = [...entries].filter(([, one]) => !one.listeners.size);
  for (const [oldest] of kept.slice(0, -MAX_KEPT)) entries.delete(oldest);
}

/**
 * Send a request at regular intervals, and immediately when the tab is shown again.
 * @param {string} key
 * @param {number} everyMs
 * @param {boolean} isLate  Whether other requests go first.
 */
function repeat(key, everyMs, isLate) {
  let [timer, hasEnded] = [0, false];
  const again = () => {
    clearTimeout(timer);
    if (document.hidden || hasEnded) return;
    withEntry(key, retry).finally(() => {
      clearTimeout(timer);
      if (!hasEnded) timer = setTimeout(again, everyMs);
    });
  };
  if (isLate) afterOthers().then(again);
  else again();
  document.addEventListener("visibilitychange", again);
  return () => {
    hasEnded = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", again);
  };
}

whenBack(() => {
  for (const entry of entries.values()) if (entry.listeners.size) retry(entry);
});
