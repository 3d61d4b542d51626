/** Loads the modules that are not needed at once. */

import { html } from "../vendor/preact.js";
import { checkConnection, whenBack } from "./connection.js";

const TRIES = 2; // The server may have been replaced between a first one and the check of the connection.

/** A module could not be loaded although the server answers, such as one that fits a newer page. */
export class PartError extends Error {}

/**
 * Load a part of the page, with as much patience as it takes until the server answers. Throws PartError.
 * @template T
 * @param {() => Promise<T>} load
 * @returns {Promise<T>}
 */
export async function loadPart(load) {
  for (let tries = 0; tries < TRIES; ) {
    try {
      return await load();
    } catch {
      if (await checkConnection()) tries += 1;
      else await answered();
    }
  }
  throw new PartError("The studio was replaced by another version, it seems");
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
