/**
 * The ids of messages in packages, whose files of messages contain no English texts, so that they are smaller. The
 * bundler replaces the texts (vendor/studio.mjs). It uses the short ids of messages that share theirs with no other
 * message, and rejects two messages with the same long id.
 */

const MOST = 36 ** 5 - 7;
const SHORT = 3;

/**
 * Return the long and the short id of an English message: letters and digits that depend on its text.
 * @param {string} text
 */
export function idsOf(text) {
  let sum = 7;
  for (let i = 0; i < text.length; i++) sum = (sum * 31 + text.charCodeAt(i)) % MOST;
  const id = sum.toString(36).padStart(SHORT + 1, "0");
  return [id, id.slice(-SHORT)];
}
