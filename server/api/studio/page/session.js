/** Coming in and leaving: the cookie is the server's, no script can read it. */

import { ApiError, ask } from "./api.js";

const SESSION = "studio/-/session";
const DEVICE = "bifolio.device"; // The key of localStorage with the random id of this browser.

/**
 * Use the key that is in the address, if there is one: `bifolio serve` prints it. It is taken out of the address,
 * and so out of the browser's history, before it is sent.
 * @returns {Promise<ApiError | null>}  Why it is of no use, if it is not.
 */
export async function useKey() {
  const url = new URL(location.href);
  const key = url.searchParams.get("key");
  if (key === null) return null;
  url.searchParams.delete("key");
  history.replaceState(null, "", url);
  try {
    await ask(SESSION, { method: "POST", body: { key } });
    return null;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/**
 * Sign in with a name or e-mail address. Throws ApiError.
 * @param {string} identifier
 * @param {string} password
 */
export async function signIn(identifier, password) {
  await ask(SESSION, { method: "POST", body: { identifier, password, deviceId: deviceId() } });
}

/**
 * The random id of this browser: a server that knows it lets its user sign in while others at the same address
 * guess passwords.
 * @returns {string | undefined}  undefined if the browser keeps nothing.
 */
function deviceId() {
  try {
    const kept = localStorage.getItem(DEVICE);
    if (kept) return kept;
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    const made = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    localStorage.setItem(DEVICE, made);
    return made;
  } catch {
    return undefined;
  }
}

/** End the session, on the server as well. Throws ApiError. */
export async function signOut() {
  await ask(SESSION, { method: "DELETE" });
}
