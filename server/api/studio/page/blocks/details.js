/**
 * Inputs for details of the current block: the language of code, the description of a picture, or the target of a link.
 */

import { t } from "../language.js";
import { html } from "../vendor/preact.js";
import { NodeSelection } from "../vendor/prosemirror.js";
import { command, setMembers } from "./commands.js";
import { insertLink, linkAt } from "./links.js";

const LANGUAGES = [
  "bash", "c", "cpp", "csharp", "css", "dart", "dockerfile", "elixir", "go", "graphql", "haskell", "html", "ini",
  "java", "javascript", "json", "jsx", "kotlin", "latex", "lua", "markdown", "perl", "php", "plaintext", "powershell",
  "python", "r", "ruby", "rust", "scala", "sql", "swift", "toml", "tsx", "typescript", "xml", "yaml",
];

/** @param {{id: string, view: import("../vendor/prosemirror.js").EditorView, link: () => void}} props */
export function Details({ id, view, link }) {
  const { state, editable } = view;
  const { selection } = state;
  const run = (/** @type {(tr: any) => boolean} */ change) => command(change)(state, view.dispatch);
  const typed = (/** @type {(text: string) => object} */ made) => (/** @type {any} */ event) => {
    run(setMembers(made(event.target.value)));
  };
  if (!editable) return null;
  if (selection instanceof NodeSelection && selection.node.type.name === "image") {
    const { image } = selection.node.attrs;
    const change = (/** @type {string} */ name) => typed((text) => ({ image: { ...image, [name]: text || null } }));
    return html`<div class="blocks-details" role="group" aria-label=${t`Picture`}>
      <${Text} id=${`${id}-alt`} label=${t`Alternative text`} value=${image.alternativeText}
        set=${change("alternativeText")} />
      <${Text} id=${`${id}-caption`} label=${t`Caption`} value=${image.caption} set=${change("caption")} />
    </div>`;
  }
  if (selection.$from.parent.type.name === "code_block") {
    const { language } = selection.$from.parent.attrs;
    return html`<div class="blocks-details" role="group" aria-label=${t`Code`}>
      <${Text} id=${`${id}-language`} label=${t`Language`} value=${language} list=${`${id}-languages`}
        set=${typed((text) => ({ language: text.trim() || undefined }))} />
      <datalist id=${`${id}-languages`}>
        ${LANGUAGES.map((name) => html`<option key=${name} value=${name} />`)}
      </datalist>
    </div>`;
  }
  const found = linkAt(state);
  if (!found.url) return null;
  return html`<div class="blocks-details" role="group" aria-label=${t`Link`}>
    <span class="blocks-address">${found.url}</span>
    <button class="button quiet" type="button" onClick=${link}>${t`Change`}</button>
    <button class="button quiet" type="button" onClick=${() => {
      run(insertLink("", ""));
      view.focus();
    }}>${t`Remove`}</button>
  </div>`;
}

/** @param {{id: string, label: string, value: any, list?: string, set: (event: any) => void}} props */
function Text({ id, label, value, list, set }) {
  return html`<label class="blocks-detail" for=${id}>${label}
    <input class="input" id=${id} list=${list} value=${value ?? ""} autocomplete="off" onInput=${set} />
  </label>`;
}
