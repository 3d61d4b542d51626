/** What every page may need, without its being handed down: who is here and what the site is; messages. */

import { createContext, useContext } from "./vendor/preact.js";

/**
 * @typedef {object} Studio
 * @property {import("./model.js").Model} model
 * @property {import("./overview.js").Overview} [overview]
 * @property {() => void} signOut
 */

export const StudioContext = createContext(/** @type {Studio} */ (/** @type {unknown} */ (null)));

/** @returns {Studio} */
export const useStudio = () => useContext(StudioContext);
