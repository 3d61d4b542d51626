/** Loads what is not needed yet, so that it is there when somebody goes on. */

/** Have the browser load the modules that the server has named in the page as to be loaded `ahead` (routes.py). */
export function loadAhead() {
  for (const link of document.querySelectorAll("link[rel=ahead]")) {
    /** @type {HTMLLinkElement} */ (link).rel = "modulepreload";
  }
}
