/** The page with problems in the site's files, by file, and buttons that fix them. */

import { addressTo } from "../addresses.js";
import { ask } from "../api.js";
import { useStudio } from "../context.js";
import { plural, t } from "../language.js";
import { counted, labelOf } from "../text.js";
import { Link, navigate } from "../router.js";
import { Empty, Failure, Loading } from "../states.js";
import { PAGE, showError, showNotice, useMessage } from "../store/messages.js";
import { useRequest } from "../store/requests.js";
import { html } from "../vendor/preact.js";
import { FixAll } from "./fix-all.js";
import { useHeading } from "./heading.js";

const EVERY_MS = 3000;
const SHOWN = 100;
const KINDS = [["", t`All`], ["error", t`Errors`], ["warning", t`Warnings`]];

/**
 * @typedef {object} Fix
 * @property {string} path
 * @property {string} key
 * @property {string | null} before
 * @property {string | null} after
 */

/**
 * @typedef {object} Problem  A problem, as returned by GET /problems.
 * @property {string} path
 * @property {number | null} line
 * @property {"error" | "warning"} severity
 * @property {string} message
 * @property {string} fix
 * @property {string | null} type
 * @property {string | null} documentId
 * @property {string | null} locale
 * @property {string | null} title
 * @property {string | null} attribute
 * @property {Fix | null} change
 */

/** @param {{params: URLSearchParams}} props */
export function ProblemsPage({ params }) {
  const { model } = useStudio();
  useHeading(model, t`Problems`);
  const severity = params.get("severity") ?? "";
  const load = (/** @type {AbortSignal} */ signal) => ask("problems", { query: { severity, pageSize: SHOWN }, signal });
  const { value: answer, error, reload, retry } = useRequest(`problems ${severity}`, load, { everyMs: EVERY_MS });
  const message = useMessage(PAGE);
  /** @param {Fix[]} fixes */
  const fix = async (fixes) => {
    const { data } = await ask("problems/fix", { method: "POST", body: { fixes } });
    const left = data.refused[0];
    if (left) showError(PAGE, `${left.path}: ${left.reason}`);
    else showNotice(PAGE, t`Fixed: ${valuesOf(data.fixed.length)}`);
    await reload();
  };
  const looking = error?.status === 503; // The first check of a large site takes a while; it is asked for again.
  const meta = answer?.meta;
  const files = [...byPath(answer?.data ?? [])];
  return html`<div class="page site-page">
    <header class="page-head">
      <h1 tabindex="-1">${t`Problems`}</h1>
      ${meta && html`<span class="site-kinds" role="group" aria-label=${t`Show`}>
        ${KINDS.map(([name, label]) => html`<button class="button" type="button" key=${name}
          aria-pressed=${severity === name}
          onClick=${() => navigate(addressTo("problems", {}, name ? { severity: name } : {}), { replace: true })}>
          ${label} <span class="site-count">${counted(countOf(meta, name))}</span>
        </button>`)}
      </span>`}
      ${meta?.fixable > 0 && model.allows("problems", "fix") && html`<${FixAll} count=${meta.fixable} fix=${fix} />`}
    </header>
    <p class="site-told" role="status">${message.text}</p>
    ${!answer && error && !looking && html`<${Failure} error=${error} again=${retry} />`}
    ${!answer && (!error || looking) && html`<${Loading} label=${t`Checking all files`} />`}
    ${answer && files.length === 0 && html`<${Empty} title=${t`No problems`}>
      ${t`All files are readable and all references resolve.`}
    <//>`}
    ${files.map(([path, problems]) => html`<${File} key=${path} ...${{ path, problems, model, fix }} />`)}
    ${meta && meta.pagination.total > SHOWN && html`<p class="site-more">
      ${t`Showing the first ${SHOWN} of ${counted(meta.pagination.total)}.`}
    </p>`}
  </div>`;
}

/** @param {Problem[]} problems @returns {Map<string, Problem[]>} */
function byPath(problems) {
  const found = new Map();
  for (const problem of problems) found.set(problem.path, [...(found.get(problem.path) ?? []), problem]);
  return found;
}

/** @param {any} meta @param {string} name */
function countOf(meta, name) {
  return { error: meta.errors, warning: meta.warnings }[name] ?? meta.errors + meta.warnings;
}

/** @param {number} count */
const valuesOf = (count) => plural(count, { one: "{0} value", other: "{0} values" });

/**
 * @param {{path: string, problems: Problem[], model: import("../model.js").Model,
 *   fix: (fixes: Fix[]) => Promise<void>}} props
 */
function File({ path, problems, model, fix }) {
  const [first] = problems;
  const type = first.type ? model.typeNamed(first.type) : undefined;
  const attempt = (/** @type {Fix} */ change) => fix([change]).catch((refused) => showError(PAGE, refused.message));
  return html`<section class="site-file" aria-label=${first.title ?? path}>
    <header class="site-file-head">
      ${first.title && html`<h2>${first.title}</h2>`}
      <span class="site-path">${path}</span>
      ${type && html`<span class="site-type">${type.label}</span>`}
    </header>
    <ul>
      ${problems.map((problem, i) => html`<li class="problem" key=${i}>
        <span class=${`problem-mark is-${problem.severity}`}>
          ${problem.severity === "error" ? t`Error` : t`Warning`}
        </span>
        <span class="problem-text">
          <span>${sentence(problem)}</span>
          <span class="problem-fix">
            ${problem.line && html`<span>${t`Line ${problem.line}.`} </span>`}
            ${problem.change ? t`“${problem.change.after ?? "null"}” is the only match.` : adviceOf(problem.fix)}
          </span>
        </span>
        <span class="problem-actions">
          ${addressOf(model, problem) && html`<${Link} class="button" to=${addressOf(model, problem)}
            aria-label=${t`Open ${titleOf(problem)}`}>${t`Open`}<//>`}
          ${problem.change && html`<button class="button" type="button"
            aria-label=${t`Fix ${problem.change.key}: ${problem.change.after ?? "null"}`}
            onClick=${() => attempt(/** @type {Fix} */ (problem.change))}>${t`Fix`}</button>`}
        </span>
      </li>`)}
    </ul>
  </section>`;
}

/** Return a problem's message, preceded by the label of its field. @param {Problem} problem */
function sentence({ message, attribute }) {
  const name = attribute && `${attribute}: `;
  if (!name || !message.startsWith(name)) return upper(message);
  return `${labelOf(attribute.split(".").at(-1) ?? "")}: ${message.slice(name.length)}`;
}

/** Return the advice on a problem as a sentence. @param {string} fix */
const adviceOf = (fix) => (fix ? `${upper(fix)}${fix.endsWith("?") ? "" : "."}` : "");

/** @param {Problem} problem */
const titleOf = ({ title, attribute }) => (attribute ? `${title}: ${attribute}` : title);

/** @param {string} text */
const upper = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/**
 * Return the URL of the form with the problem's document, at its field. Returns "" if no version of the document can be
 * served.
 * @param {import("../model.js").Model} model
 * @param {Problem} problem
 */
function addressOf(model, { type: name, documentId, title, locale, attribute }) {
  const type = name ? model.typeNamed(name) : undefined;
  if (!type || !documentId || title === null) return "";
  /** @type {Record<string, string>} */
  const params = {
    ...(locale && type.localized && locale !== model.defaultLocale ? { locale } : {}),
    ...(attribute ? { field: attribute } : {}),
  };
  return addressTo("document", { type: type.name, id: documentId }, params);
}
