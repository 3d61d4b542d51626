/** Components whose modules are loaded when they are first shown. */

import { unreachable } from "./api.js";
import { useReachable } from "./connection/connection.js";
import { loadPart } from "./connection/parts.js";
import { Failure, Loading } from "./states.js";
import { html, useLayoutEffect, useState } from "./vendor/preact.js";

/**
 * Return a component whose module is loaded when it is first shown, or earlier by its function `load`. `onLoaded` is
 * called when it is shown, unless the module was already loaded.
 * @param {string} path  The module's path in the page's folder.
 * @param {string} name  The component's name in the module.
 */
export function later(path, name) {
  /** @type {any} */
  let loaded = null;
  /** @type {Promise<void> | null} */
  let pending = null;
  const load = () => {
    pending ??= loadPart(path).then((module) => void (loaded = module[name])).finally(() => (pending = null));
    return pending;
  };
  /** @param {{onLoaded?: () => void}} props */
  function Later({ onLoaded, ...props }) {
    const reachable = useReachable();
    const [{ failure, came }, set] = useState({ failure: /** @type {any} */ (null), came: false });
    const ask = () => {
      load().then(
        () => set({ failure: null, came: true }),
        (error) => set({ failure: error, came: false }),
      );
    };
    useLayoutEffect(() => {
      if (!loaded) ask();
    }, []);
    useLayoutEffect(() => {
      if (came) onLoaded?.();
    }, [came]);
    if (loaded) return html`<${loaded} ...${props} />`;
    if (failure) return html`<${Failure} error=${failure} again=${ask} />`;
    return reachable ? html`<${Loading} />` : html`<${Failure} error=${unreachable()} />`;
  }
  Later.load = load;
  return Later;
}
