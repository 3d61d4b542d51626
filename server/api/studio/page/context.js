/** The context with data that every page may need: the user, the site, and messages. */

import { createContext, useContext } from "./vendor/preact.js";

/**
 * @typedef {object} Studio
 * @property {import("./model.js").Model} model
 * @property {import("./overview.js").Overview} [overview]
 * @property {() => void} signOut
 * @property {() => Promise<boolean>} reload  Load the site's content types and the permissions again. Resolves to
 *   whether they have changed.
 */

export const StudioContext = createContext(/** @type {Studio} */ (/** @type {unknown} */ (null)));

/** @returns {Studio} */
export const useStudio = () => useContext(StudioContext);
