/** Loads modules in advance, so that they are ready when the user needs them. */

/** Let the browser load the modules that the server lists in the page under `ahead` (routes.py). */
export function loadAhead() {
  for (const link of document.querySelectorAll("link[rel=ahead]")) {
    /** @type {HTMLLinkElement} */ (link).rel = "modulepreload";
  }
}
