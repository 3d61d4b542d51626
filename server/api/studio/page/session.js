/** Coming in and leaving: the cookie is the server's, no script can read it. */

import { ApiError, ask } from "./api.js";

const SESSION = "studio/-/session";

/**
 * Use the key that is in the address, if there is one: `quire serve` prints it. It is taken out of the address,
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
  await ask(SESSION, { method: "POST", body: { identifier, password } });
}

/** End the session, on the server as well. Throws ApiError. */
export async function signOut() {
  await ask(SESSION, { method: "DELETE" });
}
