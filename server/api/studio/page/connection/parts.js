/** Loads the modules that are not needed at once. */

import { FILES } from "../base.js";
import { html } from "../vendor/preact.js";
import { checkConnection, isReachable, whenBack } from "./connection.js";
import { checkVersion, reloadSafely } from "./version.js";

const TRIES = 2; // The server may have been replaced between a first one and the check of the connection.
const UPDATED = "The studio was updated. Reload the page to use the new version.";
const BROKEN = "The server is up, but the browser could not load part of this page.";

/**
 * How often each module has failed, by its path. Some browsers keep a failed import for as long as the page lives
 * (https://github.com/whatwg/html/issues/6768), and ask again only at another address.
 * @type {Map<string, number>}
 */
const failures = new Map();

/** A module could not be loaded although the server answers, such as one that fits a newer page. */
export class PartError extends Error {}

/**
 * Load a module of the page, with as much patience as it takes until the server answers. If it can't be loaded then,
 * reload the page, or throw PartError if something typed would be lost.
 * @param {string} path  The module's path below the page's folder.
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
 * Says below an input that it has no editor, and what helps.
 * @param {{what: string}} props
 */
export function NotLoaded({ what }) {
  return html`<p class="hint not-loaded" role="status">
    ${what} could not be loaded. <${Reload} class="text-button" />
  </p>`;
}

/** @param {{class: string}} props */
export function Reload({ class: name }) {
  return html`<button class=${name} type="button" onClick=${() => location.reload()}>Reload the page</button>`;
}
