/** Signing in and out. The server manages the session cookie, which scripts can't read. */

import { ApiError, ask } from "./api.js";

const SESSION = "studio/-/session";
const DEVICE = "bifolio.device"; // The key of localStorage with the random id of this browser.

/**
 * Use the one-time key in the URL that `bifolio serve` prints, if there is one. It is removed from the URL and the
 * browser's history before it is sent.
 * @returns {Promise<ApiError | null>}  The error if the key was not accepted, otherwise null.
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
 * Sign in with a user name or email address. Throws ApiError.
 * @param {string} identifier
 * @param {string} password
 */
export async function signIn(identifier, password) {
  await ask(SESSION, { method: "POST", body: { identifier, password, deviceId: deviceId() } });
}

/**
 * Return this browser's random id. If the server has seen it before, the user can sign in even while others guess
 * passwords from the same IP address.
 * @returns {string | undefined}  The id, or undefined if the browser can't store it.
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

/** End the session, also on the server. Throws ApiError. */
export async function signOut() {
  await ask(SESSION, { method: "DELETE" });
}
