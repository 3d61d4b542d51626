/** Cleans pasted HTML before the editor's schema parses it: removes styles, and converts lists from word processors. */

/**
 * @param {string} text
 * @returns {string}
 */
export function cleaned(text) {
  const plain = text
    .replace(/<(style|script|title|xml)\b[\s\S]*?<\/\1\s*>/gi, "")
    // Keep styles under another name. The page's policy would not apply them, but the schema can still read them.
    .replace(/<[a-z][^>]*>/gi, (tag) => tag.replace(/(?<=\s)(style|on\w+)(?=\s*=)/gi, "data-$1"));
  if (!/mso-list/i.test(plain)) return plain;
  const parsed = new DOMParser().parseFromString(plain, "text/html");
  for (const paragraph of parsed.querySelectorAll("p[data-style*='mso-list']")) listItem(parsed, paragraph);
  return parsed.body.outerHTML;
}

/**
 * Convert a paragraph that a word processor displays as a list item to an item of the preceding list.
 * @param {Document} parsed
 * @param {Element} paragraph
 */
function listItem(parsed, paragraph) {
  const level = Number(/level(\d)/.exec(paragraph.getAttribute("data-style") ?? "")?.[1] ?? 1);
  const sign = paragraph.querySelector("[data-style*='mso-list:Ignore']");
  const tag = /^\s*\w+[.)]/.test(sign?.textContent ?? "") ? "OL" : "UL";
  sign?.remove();
  const item = parsed.createElement("li");
  item.append(...paragraph.childNodes);
  const before = paragraph.previousElementSibling;
  /** @type {Element} */
  let list = parsed.createElement(tag);
  if (before?.matches("[data-made]") && (level > 1 || before.tagName === tag)) list = before;
  else paragraph.before(list);
  list.setAttribute("data-made", "");
  for (let depth = 1; depth < level; depth++) {
    /** @type {Element | null} */
    const last = list.lastElementChild;
    list = last && /^[OU]L$/.test(last.tagName) ? last : list.appendChild(parsed.createElement(tag));
  }
  list.append(item);
  paragraph.remove();
}
