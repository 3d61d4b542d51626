/** Parts of the page that are loaded when they are first shown. */

import { loadPart } from "./connection/parts.js";
import { Failure, Loading } from "./states.js";
import { html, useEffect, useState } from "./vendor/preact.js";

/**
 * A component whose module is not there yet.
 * @param {() => Promise<any>} load  Gives the component.
 */
export function later(load) {
  /** @type {any} */
  let loaded = null;
  /** @param {object} props */
  return function Later(props) {
    const [{ failure }, set] = useState({ failure: /** @type {any} */ (null) });
    const ask = () => {
      loadPart(load).then(
        (component) => {
          loaded = component;
          set({ failure: null });
        },
        (error) => set({ failure: error }),
      );
    };
    useEffect(() => {
      if (!loaded) ask();
    }, []);
    if (failure) return html`<${Failure} error=${failure} again=${ask} />`;
    return loaded ? html`<${loaded} ...${props} />` : html`<${Loading} />`;
  };
}
