/** The panel that is open beside a form, as the address has it: `panel`. */

import { addressOf, currentPlace, navigate } from "../router.js";

/**
 * Open a panel, or close the one that is open; Back does not lead to the one before.
 * @param {string} name  "" for none.
 */
export function openPanel(name) {
  const { parts, params } = currentPlace();
  params.delete("panel");
  if (name) params.set("panel", name);
  navigate(addressOf(parts, params), { replace: true, unguarded: true });
}
