/** Parts of the page that are loaded when they are first shown. */

import { unreachable } from "./api.js";
import { useReachable } from "./connection/connection.js";
import { loadPart } from "./connection/parts.js";
import { Failure, Loading } from "./states.js";
import { html, useEffect, useLayoutEffect, useState } from "./vendor/preact.js";

/**
 * A component whose module is not there yet. Where it had to be waited for, `onLoaded` is called when it is shown.
 * @param {() => Promise<any>} load  Gives the component.
 */
export function later(load) {
  /** @type {any} */
  let loaded = null;
  /** @param {{onLoaded?: () => void}} props */
  return function Later({ onLoaded, ...props }) {
    const reachable = useReachable();
    const [{ failure, came }, set] = useState({ failure: /** @type {any} */ (null), came: false });
    const ask = () => {
      loadPart(load).then(
        (component) => {
          loaded = component;
          set({ failure: null, came: true });
        },
        (error) => set({ failure: error, came: false }),
      );
    };
    useEffect(() => {
      if (!loaded) ask();
    }, []);
    useLayoutEffect(() => {
      if (came) onLoaded?.();
    }, [came]);
    if (loaded) return html`<${loaded} ...${props} />`;
    if (failure) return html`<${Failure} error=${failure} again=${ask} />`;
    return reachable ? html`<${Loading} />` : html`<${Failure} error=${unreachable()} />`;
  };
}
