/** Compares two texts: returns the common, removed and added parts. Lines are compared first, then words. */

/**
 * @typedef {"same" | "removed" | "added"} Kind
 * @typedef {{kind: Kind, text: string}} Part
 */

const MOST_EDITS = 600; // of two sequences; with more, they are taken to have nothing in common between
const MOST_CHARACTERS = 20_000; // in a change whose words are compared

/**
 * Return the parts of two texts, in order.
 * @param {string} before
 * @param {string} after
 * @returns {Part[]}
 */
export function textParts(before, after) {
  const parts = changesOf(linesOf(before), linesOf(after)).flatMap(({ kind, old, now }) => {
    if (kind === "same") return [part("same", old)];
    if (!old.length || !now.length) return [part(old.length ? "removed" : "added", [...old, ...now])];
    return wordParts(old.join(""), now.join(""));
  });
  return joined(parts);
}

/** @param {string} text */
const linesOf = (text) => (text ? text.split(/(?<=\n)/) : []);

/** @param {Kind} kind @param {string[]} texts @returns {Part} */
const part = (kind, texts) => ({ kind, text: texts.join("") });

/** @param {string} before @param {string} after @returns {Part[]} */
function wordParts(before, after) {
  if (before.length + after.length > MOST_CHARACTERS) return [part("removed", [before]), part("added", [after])];
  const changes = withoutGaps(changesOf(wordsOf(before), wordsOf(after)));
  return changes.flatMap(({ kind, old, now }) => {
    if (kind === "same") return [part("same", old)];
    return [part("removed", old), part("added", now)].filter(({ text }) => text);
  });
}

/** @param {string} text */
const wordsOf = (text) => text.match(/[\p{L}\p{M}\p{N}_]+(?:['’][\p{L}\p{M}]+)*|\s+|[^]/gu) ?? [];

/**
 * @typedef {{kind: "same" | "changed", old: string[], now: string[]}} Change
 * @param {Change[]} changes
 * @returns {Change[]}
 */
function withoutGaps(changes) {
  /** @type {Change[]} */
  const made = [];
  changes.forEach((change, index) => {
    const last = made.at(-1);
    const isGap = change.kind === "same" && index < changes.length - 1 && /^[^\S\n]*$/.test(change.old.join(""));
    if (last?.kind === "changed" && (isGap || change.kind === "changed")) {
      last.old.push(...change.old);
      last.now.push(...change.now);
    } else made.push({ ...change, old: [...change.old], now: [...change.now] });
  });
  return made;
}

/** Join adjacent parts of the same kind. @param {Part[]} parts */
function joined(parts) {
  /** @type {Part[]} */
  const made = [];
  for (const { kind, text } of parts) {
    const last = made.at(-1);
    if (last?.kind === kind) last.text += text;
    else made.push({ kind, text });
  }
  return made;
}

/**
 * Return the common and the different parts of two sequences, in order.
 * @param {string[]} before
 * @param {string[]} after
 * @returns {Change[]}
 */
export function changesOf(before, after) {
  /** @type {Change[]} */
  const changes = [];
  let [old, now] = [0, 0];
  for (const [a, b] of [...matches(before, after), [before.length, after.length]]) {
    if (a > old || b > now) changes.push({ kind: "changed", old: before.slice(old, a), now: after.slice(now, b) });
    if (a === before.length && b === after.length) break;
    const last = changes.at(-1);
    if (last?.kind === "same") {
      last.old.push(before[a]);
      last.now.push(after[b]);
    } else changes.push({ kind: "same", old: [before[a]], now: [after[b]] });
    [old, now] = [a + 1, b + 1];
  }
  return changes;
}

/**
 * Return pairs of indices at which two sequences have the same items.
 * @param {string[]} before
 * @param {string[]} after
 * @returns {number[][]}
 */
function matches(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  const left = before.slice(start, before.length - end);
  const right = after.slice(start, after.length - end);
  const same = (/** @type {number} */ length, /** @type {number} */ a, /** @type {number} */ b) => {
    return Array.from({ length }, (_, i) => [a + i, b + i]);
  };
  return [
    ...same(start, 0, 0),
    ...shortest(left, right).map(([a, b]) => [a + start, b + start]),
    ...same(end, before.length - end, after.length - end),
  ];
}

/**
 * Return the matches of a shortest edit script (Myers 1986), or none if it would have too many edits.
 * @param {string[]} before
 * @param {string[]} after
 * @returns {number[][]}
 */
function shortest(before, after) {
  const [n, m] = [before.length, after.length];
  if (!n || !m) return [];
  const most = Math.min(n + m, MOST_EDITS);
  const reached = new Int32Array(2 * most + 3);
  const trace = [];
  for (let edits = 0; edits <= most; edits++) {
    trace.push(reached.slice(most - edits, most + edits + 3)); // from the diagonal before the first on
    for (let k = -edits; k <= edits; k += 2) {
      const at = most + 1 + k;
      const down = k === -edits || (k !== edits && reached[at - 1] < reached[at + 1]);
      let x = down ? reached[at + 1] : reached[at - 1] + 1;
      while (x < n && x - k < m && before[x] === after[x - k]) x++;
      reached[at] = x;
      if (x >= n && x - k >= m) return traced(trace, n, m);
    }
  }
  return [];
}

/** @param {Int32Array[]} trace @param {number} n @param {number} m */
function traced(trace, n, m) {
  /** @type {number[][]} */
  const found = [];
  let [x, y] = [n, m];
  for (let edits = trace.length - 1; edits >= 0; edits--) {
    const reached = (/** @type {number} */ k) => trace[edits][edits + 1 + k];
    const k = x - y;
    const down = k === -edits || (k !== edits && reached(k - 1) < reached(k + 1));
    const from = edits ? (down ? k + 1 : k - 1) : 0;
    const [startX, startY] = edits ? [reached(from), reached(from) - from] : [0, 0];
    const [endX, endY] = edits ? (down ? [startX, startY + 1] : [startX + 1, startY]) : [0, 0];
    while (x > endX && y > endY) found.push([--x, --y]);
    [x, y] = [startX, startY];
  }
  return found.reverse();
}
