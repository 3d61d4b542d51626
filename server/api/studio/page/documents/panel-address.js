/** The name of the panel that is open next to a form, in the URL's parameter `panel`. */

import { addressOf, currentPlace, navigate } from "../router.js";

/**
 * Open a panel instead of the current one. The browser's Back button does not return to the previous panel.
 * @param {string} name  The panel's name, or "" to close the current one.
 */
export function openPanel(name) {
  const { parts, params } = currentPlace();
  params.delete("panel");
  if (name) params.set("panel", name);
  navigate(addressOf(parts, params), { replace: true, unguarded: true });
}
