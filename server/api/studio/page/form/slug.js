/** Generates a uid from the text of another attribute. */

/** @type {Record<string, string>} */
const LETTERS = { ß: "ss", æ: "ae", œ: "oe", ø: "o", đ: "d", ð: "d", þ: "th", ł: "l", ı: "i", "&": " and " };

/**
 * Convert a text to a URL segment: "Équinoxe & Co" → "equinoxe-and-co".
 * @param {string} text
 */
export function slugOf(text) {
  const plain = text.toLowerCase().replace(/[ßæœøđðþłı&]/g, (letter) => LETTERS[letter]);
  const words = plain.normalize("NFD").replace(/\p{M}/gu, "").replace(/['’]/g, "").match(/[a-z0-9]+/g);
  return (words ?? []).join("-");
}
