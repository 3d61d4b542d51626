/** Pasted HTML, before the schema takes of it what it knows: without styles, and with the lists of word processors. */

/**
 * @param {string} text
 * @returns {string}
 */
export function cleaned(text) {
  const plain = text
    .replace(/<(style|script|title|xml)\b[\s\S]*?<\/\1\s*>/gi, "")
    // What the page's policy refuses to apply is still there to read.
    .replace(/<[a-z][^>]*>/gi, (tag) => tag.replace(/(?<=\s)(style|on\w+)(?=\s*=)/gi, "data-$1"));
  if (!/mso-list/i.test(plain)) return plain;
  const parsed = new DOMParser().parseFromString(plain, "text/html");
  for (const paragraph of parsed.querySelectorAll("p[data-style*='mso-list']")) listItem(parsed, paragraph);
  return parsed.body.outerHTML;
}

/**
 * Make a paragraph that a word processor shows as an item of a list one, in the list that ends before it.
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
