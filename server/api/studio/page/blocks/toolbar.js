/** The toolbar of the editor. Tab moves to the whole toolbar; the arrow keys move between its controls. */

import { Icon } from "../icons.js";
import { t } from "../language.js";
import { html, useState } from "../vendor/preact.js";
import { redo, toggleMark, undo } from "../vendor/prosemirror.js";
import { command, indent, outdent, selectedItems, toBlock, toList } from "./commands.js";
import { mayLink } from "./links.js";
import { schema } from "./schema.js";

/**
 * @typedef {import("../vendor/prosemirror.js").EditorState} EditorState
 * @typedef {import("../vendor/prosemirror.js").Command} Command
 */

const { marks } = schema;

/**
 * @typedef {object} Tool
 * @property {keyof typeof import("../icons.js").PATHS} icon
 * @property {string} label
 * @property {string} [keys]
 * @property {Command} run
 * @property {(state: EditorState) => boolean} [active]
 */

/** @param {string} name @param {string} label @param {string} keys @returns {Tool} */
const mark = (name, label, keys) => ({
  icon: /** @type {Tool["icon"]} */ (name),
  label,
  keys,
  run: toggleMark(marks[name]),
  active: (state) => hasMark(state, name),
});

/** @param {"ordered" | "unordered"} format @param {Tool["icon"]} icon @param {string} label @param {string} keys */
const list = (format, icon, label, keys) => ({
  icon,
  label,
  keys,
  run: command(toList(format)),
  active: (/** @type {EditorState} */ state) => selectedItems(state)?.list.attrs.format === format,
});

/** @type {Tool[][]} */
const TOOLS = [
  [
    mark("bold", t`Bold`, "Ctrl+B"),
    mark("italic", t`Italic`, "Ctrl+I"),
    mark("underline", t`Underline`, "Ctrl+U"),
    mark("strikethrough", t`Strikethrough`, "Ctrl+Shift+X"),
    mark("code", t`Code`, "Ctrl+E"),
  ],
  [
    list("unordered", "bullets", t`Bulleted list`, "Ctrl+Shift+8"),
    list("ordered", "numbers", t`Numbered list`, "Ctrl+Shift+7"),
    { icon: "left", label: t`Outdent`, keys: "Shift+Tab", run: command(outdent) },
    { icon: "right", label: t`Indent`, keys: "Tab", run: command(indent) },
  ],
];
/** @type {Tool[]} */
const HISTORY = [
  { icon: "undo", label: t`Undo`, keys: "Ctrl+Z", run: undo },
  { icon: "redo", label: t`Redo`, keys: "Ctrl+Shift+Z", run: redo },
];

/** @type {[string, string, (tr: import("../vendor/prosemirror.js").Transaction) => boolean][]} */
const BLOCKS = [
  ["paragraph", t`Paragraph`, toBlock("paragraph")],
  ...[1, 2, 3, 4, 5, 6].map((level) => {
    return /** @type {typeof BLOCKS[0]} */ ([`heading${level}`, t`Heading ${level}`, toBlock("heading", { level })]);
  }),
  ["quote", t`Quote`, toBlock("quote")],
  ["code_block", t`Code`, toBlock("code_block")],
];

/**
 * Return whether the whole selection, or the text that is typed next, has a mark.
 * @param {EditorState} state
 * @param {string} name
 */
export function hasMark({ doc, selection, storedMarks }, name) {
  const { from, $from, to, empty } = selection;
  return empty ? !!marks[name].isInSet(storedMarks ?? $from.marks()) : doc.rangeHasMark(from, to, marks[name]);
}

/**
 * Return the type of the block that contains the cursor, or "" if the toolbar has no name for it.
 * @param {EditorState} state
 */
function kindOfBlock({ selection: { $from } }) {
  const { type, attrs } = $from.parent;
  const name = type.name === "heading" ? `heading${attrs.level}` : type.name;
  return BLOCKS.some(([known]) => known === name) ? name : "";
}

/**
 * @param {{id: string, view: import("../vendor/prosemirror.js").EditorView, link: () => void, picture?: () => void,
 *   source: () => void, children?: any}} props
 */
export function Toolbar({ id, view, link, picture, source, children }) {
  const [at, setAt] = useState(0);
  const { state } = view;
  const kind = kindOfBlock(state);
  let count = 0;
  /** Return the properties that make a control part of the toolbar. @param {boolean} [possible] */
  const place = (possible = true) => {
    const index = count++;
    const tabindex = index === at ? 0 : -1;
    return { tabindex, onFocus: () => setAt(index), "aria-disabled": !possible, "data-tool": "" };
  };
  const run = (/** @type {Command} */ command) => {
    command(state, view.dispatch);
    view.focus();
  };
  const button = (/** @type {Tool} */ { icon, label, keys, run: does, active }) => html`<${Button} key=${label}
    place=${place(view.editable && does(state))} pressed=${active?.(state)} act=${() => run(does)}
    ...${{ icon, label, keys }} />`;
  return html`<div class="blocks-toolbar" role="toolbar" aria-label=${t`Formatting`} aria-controls=${id}
    onKeyDown=${steer}
    id=${`${id}-toolbar`}>
    <select class="blocks-kind" aria-label=${t`Block type`} ...${place()} disabled=${!view.editable}
      value=${kind} onChange=${(/** @type {any} */ e) => {
        const chosen = BLOCKS.find(([name]) => name === e.target.value);
        if (chosen) run(command(chosen[2]));
      }}>
      ${kind === "" && html`<option value="">${state.selection.$from.depth > 1 ? t`List` : t`Block`}</option>`}
      ${BLOCKS.map(([name, label]) => html`<option key=${name} value=${name}>${label}</option>`)}
    </select>
    ${TOOLS.map((group) => html`<span class="blocks-tools">${group.map(button)}</span>`)}
    <span class="blocks-tools">
      <${Button} icon="link" label=${t`Link`} keys="Ctrl+Shift+K" act=${link}
        place=${place(view.editable && mayLink(state))} pressed=${hasMark(state, "link")} />
      ${picture && html`<${Button} icon="picture" label=${t`Picture`} place=${place(view.editable)} act=${picture} />`}
    </span>
    <span class="blocks-tools">${HISTORY.map(button)}</span>
    <button class="blocks-source" type="button" ...${place()} onClick=${source}>JSON</button>
  </div>`;
}

/**
 * @param {{icon: Tool["icon"], label: string, keys?: string, place: any, pressed?: boolean, act: () => void}} props
 */
function Button({ icon, label, keys, place, pressed, act }) {
  return html`<button class="icon-button blocks-tool" type="button" aria-label=${label} aria-pressed=${pressed}
    title=${keys ? `${label} (${keys})` : label} ...${place} onClick=${() => !place["aria-disabled"] && act()}
    onMouseDown=${(/** @type {Event} */ e) => e.preventDefault()}><${Icon} name=${icon} /></button>`;
}

/** @param {KeyboardEvent} event */
function steer(event) {
  const toolbar = /** @type {HTMLElement} */ (event.currentTarget);
  const tools = /** @type {HTMLElement[]} */ ([...toolbar.querySelectorAll("[data-tool]")]);
  const from = tools.findIndex((tool) => tool === event.target);
  const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: tools.length - 1 }[event.key];
  if (to === undefined || from < 0) return;
  event.preventDefault();
  tools[(to + tools.length) % tools.length].focus();
}
