/** Whether the server answers. While it does not, it is asked again, and whoever waits for it is told when it does. */

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

/** Whether the last request was answered. */
export const isReachable = () => reachable;

/** Note that a request was not answered: the server is asked until it answers. */
export function connectionLost() {
  lostAt = performance.now();
  setReachable(false);
}

/**
 * Note that a request was answered. A late answer to a request of before the connection was lost says nothing.
 * @param {number} sentAt  When the request was sent, by performance.now().
 */
export function connectionFound(sentAt) {
  if (sentAt >= lostAt) setReachable(true);
}

/** Ask the server whether it is there, and tell everybody who waits; resolves to whether it is. */
export async function checkConnection() {
  const sentAt = performance.now();
  const answered = await fetch(HEALTH, { cache: "no-store" }).then(({ ok }) => ok, () => false);
  if (answered) connectionFound(sentAt);
  else connectionLost();
  return answered;
}

/**
 * Call a function whenever the server answers again; returns what undoes that.
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
 * Call a function whenever the server answers again, while a component is shown.
 * @param {() => void} again
 */
export function useBack(again) {
  const latest = useRef(again);
  latest.current = again;
  useEffect(() => whenBack(() => latest.current()), []);
}

/** Whether the server answers, as far as it is known. */
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

// The browser does not know: a server on the same machine answers without any network.
addEventListener("online", checkConnection);
addEventListener("offline", checkConnection);
