/** The input for `blocks`: an editor, which is loaded when it is first shown, or the JSON source of the value. */

import { NotLoaded, loadPart } from "../connection/parts.js";
import { Json } from "../form/inputs.js";
import { Unparsed } from "../form/values.js";
import { t } from "../language.js";
import { html, useEffect, useState } from "../vendor/preact.js";

/** @typedef {import("../form/field.js").InputProps} InputProps */

/** @type {any} */
let loaded = null;

/** @param {InputProps} props */
export function Blocks(props) {
  const [Editor, set] = useState(() => loaded);
  const [failed, fail] = useState(false);
  const [source, setSource] = useState(false);
  useEffect(() => {
    if (loaded) return;
    loadPart("blocks/editor.js").then(
      (module) => set(() => (loaded = module.Editor)),
      () => fail(true),
    );
  }, []);
  const { value } = props;
  const readable = !(value instanceof Unparsed) && (value === null || value === undefined || Array.isArray(value));
  if (failed) {
    return html`<${Json} ...${props} />
      <${NotLoaded} what=${t`The editor`} />`;
  }
  if (source || !readable) {
    return html`<div class="blocks">
      <div class="blocks-toolbar"><button class="blocks-source" type="button" disabled=${!readable}
        onClick=${() => setSource(false)}>${t`Editor`}</button></div>
      <${Json} ...${props} />
    </div>`;
  }
  if (!Editor) return html`<${Placeholder} value=${value ?? []} />`;
  return html`<${Editor} ...${props} source=${() => setSource(true)} />`;
}

/** The text of the blocks, at the place where the editor will show it. @param {{value: any[]}} props */
function Placeholder({ value }) {
  return html`<div class="blocks" aria-busy="true">
    <div class="blocks-toolbar"></div>
    <div class="blocks-host"><div class="blocks-text">
      ${(value.length ? value : [null]).map((block) => html`<${tagOf(block)}>${wordsOf(block) || " "}<//>`)}
    </div></div>
  </div>`;
}

/** @param {any} block */
function tagOf(block) {
  if (block?.type === "heading") return `h${Number(block.level) || 2}`;
  return { quote: "blockquote", code: "pre" }[String(block?.type)] ?? "p";
}

/** Return the text of a node. Each item of a list has a line of its own. @param {any} node @returns {string} */
function wordsOf(node) {
  if (typeof node?.text === "string") return node.text;
  const children = Array.isArray(node?.children) ? node.children : [];
  return children.map(wordsOf).join(node?.type === "list" ? "\n" : "");
}
