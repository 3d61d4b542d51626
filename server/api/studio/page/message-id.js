/**
 * The ids of messages in packages, whose files of messages contain no English texts, so that they are smaller. The
 * bundler replaces the texts (vendor/studio.mjs), and rejects two messages with the same id.
 */

const MOST = 36 ** 5 - 7;

/** Return the id of an English message: five letters and digits that depend on its text. @param {string} text */
export function shortId(text) {
  let sum = 7;
  for (let i = 0; i < text.length; i++) sum = (sum * 31 + text.charCodeAt(i)) % MOST;
  return sum.toString(36);
}
