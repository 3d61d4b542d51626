/** The page with uncommitted changes. Users can select changes and commit them. */

import { ask } from "../api.js";
import { useStudio } from "../context.js";
import { plural, t } from "../language.js";
import { ago, counted, filesText, labelOf, timestamp } from "../text.js";
import { Empty, Failure, Loading } from "../states.js";
import { PAGE, clearMessage, showError, showNotice, useMessage } from "../store/messages.js";
import { useRequest } from "../store/requests.js";
import { html, useState } from "../vendor/preact.js";
import { Difference } from "./difference.js";
import { useHeading } from "./heading.js";

const EVERY_MS = 6000;
const SHOWN = 100;
const COMMIT = "commit"; // the place of messages
const ACTIONS = { create: t`New`, update: t`Changed`, delete: t`Deleted`, rename: t`Renamed` };

/**
 * @typedef {object} Changed  A changed file, as returned by GET /history/uncommitted.
 * @property {string} path
 * @property {string | null} before
 * @property {keyof typeof ACTIONS} action
 * @property {string | null} type
 * @property {string | null} title
 * @property {string | null} status
 * @property {string | null} date
 * @property {string[] | null} attributes
 */

export function ChangesPage() {
  const { model } = useStudio();
  useHeading(model, t`Changes`);
  const query = { pageSize: SHOWN };
  const load = (/** @type {AbortSignal} */ signal) => ask("history/uncommitted", { query, signal });
  const { value: answer, error, reload, retry } = useRequest("uncommitted", load, { everyMs: EVERY_MS });
  const [left, setLeft] = useState(/** @type {string[]} */ ([]));
  const message = useMessage(PAGE);
  /** @type {Changed[]} */
  const files = answer?.data ?? [];
  const chosen = files.filter(({ path }) => !left.includes(path));
  const may = model.allows("history", "commit");
  const toggle = (/** @type {string} */ path) =>
    setLeft(left.includes(path) ? left.filter((one) => one !== path) : [...left, path]);
  /** @param {string} text */
  const commit = async (text) => {
    const paths = chosen.map(({ path }) => path);
    const { data } = await ask("history/commit", { method: "POST", body: { message: text, files: paths } });
    showNotice(PAGE, t`Committed as ${data.commit.slice(0, 8)}: ${filesText(paths.length)}`);
    await reload();
  };
  return html`<div class="page site-page">
    <header class="page-head">
      <h1 tabindex="-1">${t`Changes`}</h1>
      ${answer && html`<span class="site-note">${noteOf(answer.meta)}</span>`}
    </header>
    <p class="site-told" role="status">${message.text}</p>
    ${!answer && error && (error.status === 409
      ? html`<${Empty} title=${t`This site does not use git`}>${error.message}.<//>`
      : html`<${Failure} error=${error} again=${retry} />`)}
    ${!answer && !error && html`<${Loading} />`}
    ${answer && files.length === 0 && html`<${Empty} title=${t`Everything is committed`}>
      ${answer.meta.commit === "off" ? t`New changes are listed here.`
        : t`New changes are listed here until it is committed.`}
    <//>`}
    ${files.length > 0 && html`<ul class="changed-files">
      ${files.map((file) => html`<${File} key=${file.path} file=${file} chosen=${may && !left.includes(file.path)}
        toggle=${may ? toggle : undefined} />`)}
    </ul>`}
    ${answer && answer.meta.pagination.total > SHOWN && html`<p class="site-more">
      ${t`Showing the first ${SHOWN} of ${counted(answer.meta.pagination.total)}.`}
    </p>`}
    ${may && files.length > 0 && html`<${CommitForm} count=${chosen.length} commit=${commit}
      underWay=${answer?.meta.underWay} />`}
  </div>`;
}

/**
 * Return a note that names the branch for commits, and says when writes are committed automatically.
 * @param {any} meta
 */
function noteOf({ branch, commit, pending }) {
  const where = branch ? t`On ${branch}.` : t`Not on a branch.`;
  const when = { off: t`Commit here or with git.`, each: t`Every save in the studio is committed immediately.` };
  const waits = pending ? ` ${pendingText(pending)}` : "";
  return `${where} ${when[/** @type {"off"} */ (commit)] ?? t`Saves are committed after ${commit}.`}${waits}`;
}

/** @param {number} pending */
const pendingText = (pending) => {
  return plural(pending, { one: "{0} save waits to be committed.", other: "{0} saves wait to be committed." });
};

/** @param {{file: Changed, chosen: boolean, toggle?: (path: string) => void}} props */
function File({ file, chosen, toggle }) {
  const [open, setOpen] = useState(false);
  const { model } = useStudio();
  const type = file.type ? model.typeNamed(file.type) : undefined;
  const name = file.title ?? file.path;
  return html`<li class="changed-file">
    <div class="changed-row">
      ${toggle && html`<input type="checkbox" checked=${chosen} aria-label=${t`Commit ${name}`}
        onChange=${() => toggle(file.path)} />`}
      <div class="changed-what">
        <span class="changed-name">${name}</span>
        ${file.title && html`<span class="site-path">${file.before ? `${file.before} → ` : ""}${file.path}</span>`}
        ${(file.attributes?.length ?? 0) > 0 && file.action === "update" && html`<span class="changed-fields">
          ${file.attributes?.map(labelOf).join(", ")}
        </span>`}
      </div>
      ${type && html`<span class="site-type">${type.label}${file.status === "draft" ? `, ${t`draft`}` : ""}</span>`}
      <span class=${`changed-action is-${file.action}`}>${ACTIONS[file.action]}</span>
      ${file.date
        ? html`<time class="changed-time" datetime=${file.date} title=${timestamp(file.date)}>${ago(file.date)}</time>`
        : html`<span class="changed-time"></span>`}
      <button class="button" type="button" aria-expanded=${open} onClick=${() => setOpen(!open)}>
        ${open ? t`Hide` : t`Show`}<span class="unseen"> ${t`changes in ${name}`}</span>
      </button>
    </div>
    ${open && html`<${Difference} path=${file.path} date=${file.date} />`}
  </li>`;
}

/** @param {{count: number, commit: (message: string) => Promise<void>, underWay?: string | null}} props */
function CommitForm({ count, commit, underWay }) {
  const [message, setMessage] = useState("");
  const error = useMessage(COMMIT);
  const [busy, setBusy] = useState(false);
  const off = busy || !count || !message.trim(); // The button keeps the focus, also while there is nothing to commit.
  /** @param {Event} event */
  const send = async (event) => {
    event.preventDefault();
    if (off) return;
    setBusy(true);
    clearMessage(COMMIT);
    try {
      await commit(message);
      setMessage("");
    } catch (refused) {
      showError(COMMIT, /** @type {Error} */ (refused).message);
    }
    setBusy(false);
  };
  if (underWay) {
    return html`<p class="site-note">${t`Git is in the middle of ${underWay}.
      Finish or abort it with git before you commit here.`}</p>`;
  }
  return html`<form class="commit-form" onSubmit=${send}>
    <label class="field-label" for="commit-message">${t`Commit message`}</label>
    <textarea id="commit-message" rows="3" value=${message} required maxlength="10000"
      onInput=${(/** @type {any} */ event) => setMessage(event.currentTarget.value)}></textarea>
    <p class="field-error" role="alert">${error.text}</p>
    <button class="button primary" type="submit" aria-disabled=${off ? "true" : undefined}>
      ${count ? t`Commit ${filesText(count)}` : t`Commit`}
    </button>
  </form>`;
}
