/** Loads modules that are not needed immediately. */

import { FILES } from "../base.js";
import { t } from "../language.js";
import { html } from "../vendor/preact.js";
import { checkConnection, isReachable, whenBack } from "./connection.js";
import { checkVersion, reloadSafely } from "./version.js";

const TRIES = 2; // The server may have been replaced between a first one and the check of the connection.
const UPDATED = t`The studio was updated. Reload the page to use the new version.`;
const BROKEN = t`The server is up, but the browser could not load part of this page.`;

/**
 * The number of times that loading each module has failed, by path. Some browsers remember a failed import until the
 * page is closed (https://github.com/whatwg/html/issues/6768), so the module must be requested under another URL.
 * @type {Map<string, number>}
 */
const failures = new Map();

/**
 * A module could not be loaded although the server responds, for example because it belongs to another version of the
 * page.
 */
export class PartError extends Error {}

/**
 * Load a module of the page. If the server does not respond, wait until it does. If the module still can't be loaded,
 * reload the page, or throw PartError if unsaved text would be lost.
 * @param {string} path  The module's path in the page's folder.
 * @returns {Promise<any>}
 */
export async function loadPart(path) {
  for (let tries = 0; tries < TRIES; ) {
    if (!isReachable()) await answered();
    const failed = failures.get(path) ?? 0;
    try {
      return await import(new URL(`${path}${failed ? `?again=${failed}` : ""}`, FILES).href);
    } catch {
      failures.set(path, failed + 1);
      if (await checkConnection()) tries += 1;
    }
  }
  const updated = await checkVersion();
  if (reloadSafely()) await new Promise(() => {}); // The page is about to go.
  throw new PartError(updated ? UPDATED : BROKEN);
}

function answered() {
  return new Promise((done) => {
    const stop = whenBack(() => {
      stop();
      done(null);
    });
  });
}

/**
 * A message below an input whose editor could not be loaded, with advice.
 * @param {{what: string}} props
 */
export function NotLoaded({ what }) {
  return html`<p class="hint not-loaded" role="status">
    ${t`${what} could not be loaded.`} <${Reload} class="text-button" />
  </p>`;
}

/** @param {{class: string}} props */
export function Reload({ class: name }) {
  return html`<button class=${name} type="button" onClick=${() => location.reload()}>${t`Reload the page`}</button>`;
}
