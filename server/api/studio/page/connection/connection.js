/**
 * The state of the connection to the server. After a failure, the server is polled, and listeners are called when it is
 * back.
 */

import { SITE } from "../base.js";
import { useEffect, useRef, useState } from "../vendor/preact.js";

const HEALTH = new URL("_health", SITE);
const AGAIN_MS = 1500;

let reachable = true;
let lostAt = -Infinity; // when a request was last not answered, by performance.now()
let timer = 0;
/** @type {Set<() => void>} */
const changes = new Set();

/** @param {boolean} now */
function setReachable(now) {
  clearTimeout(timer);
  if (!now) timer = setTimeout(checkConnection, AGAIN_MS);
  if (now === reachable) return;
  reachable = now;
  for (const listener of [...changes]) listener();
}

/** Return whether the last request received a response. */
export const isReachable = () => reachable;

/** Record that a request received no response. The server is then polled until it responds. */
export function connectionLost() {
  lostAt = performance.now();
  setReachable(false);
}

/**
 * Record that a request received a response. A late response to a request from before the failure is ignored.
 * @param {number} sentAt  The time at which the request was sent, as returned by performance.now().
 */
export function connectionFound(sentAt) {
  if (sentAt >= lostAt) setReachable(true);
}

/** Check whether the server responds, and notify the listeners. Resolves to whether it does. */
export async function checkConnection() {
  const sentAt = performance.now();
  const answered = await fetch(HEALTH, { cache: "no-store" }).then(({ ok }) => ok, () => false);
  if (answered) connectionFound(sentAt);
  else connectionLost();
  return answered;
}

/**
 * Call a function whenever the server responds again. Returns a function that cancels this.
 * @param {() => void} listener
 */
export function whenBack(listener) {
  const changed = () => reachable && listener();
  changes.add(changed);
  return () => {
    changes.delete(changed);
  };
}

/**
 * Call a function whenever the server responds again, as long as a component is shown.
 * @param {() => void} again
 */
export function useBack(again) {
  const latest = useRef(again);
  latest.current = again;
  useEffect(() => whenBack(() => latest.current()), []);
}

/** Return whether the server responded to the last request. */
export function useReachable() {
  const [now, set] = useState(reachable);
  useEffect(() => {
    const changed = () => set(reachable);
    changes.add(changed);
    changed();
    return () => {
      changes.delete(changed);
    };
  }, []);
  return now;
}

// The browser's own state is not enough: a server on the same machine also responds without a network.
addEventListener("online", checkConnection);
addEventListener("offline", checkConnection);
