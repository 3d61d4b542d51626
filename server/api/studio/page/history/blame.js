/** Shows who has last changed each field, and when. This is requested only when the user opens it. */

import { ask } from "../api.js";
import { localeParam } from "../documents/beginning.js";
import { t } from "../language.js";
import { ago, labelOf, timestamp } from "../text.js";
import { Failure, Loading } from "../states.js";
import { keyOf, useRequest } from "../store/requests.js";
import { html, useState } from "../vendor/preact.js";
import { historyPath } from "./versions.js";

/**
 * @param {{subject: import("../documents/form.js").Subject, status: "published" | "draft", mark: string}} props
 */
export function Blame({ subject, status, mark }) {
  const [open, set] = useState(false);
  const toggle = (/** @type {Event} */ e) => set(/** @type {HTMLDetailsElement} */ (e.currentTarget).open);
  return html`<details class="blame" onToggle=${toggle}>
    <summary>${t`Last change of each field`}</summary>
    ${open && html`<${Fields} ...${{ subject, status, mark }} key=${mark} />`}
  </details>`;
}

/** @param {{subject: import("../documents/form.js").Subject, status: "published" | "draft", mark: string}} props */
function Fields({ subject, status, mark }) {
  const path = `${historyPath(subject)}/blame`;
  const query = { ...localeParam(subject), status };
  const key = keyOf(path, subject.locale, status, mark);
  const { value, error, retry } = useRequest(key, (signal) => ask(path, { query, signal }));
  if (error) return html`<${Failure} error=${error} again=${retry} />`;
  if (!value) return html`<${Loading} />`;
  const { data } = value;
  const names = Object.keys(subject.type.attributes).filter((name) => data[name]);
  return html`
    ${subject.drafts && status === "published" && html`<p class="hint">${t`Published version`}</p>`}
    <table class="blame-fields">
      <thead class="unseen"><tr><th scope="col">${t`Field`}</th><th scope="col">${t`Last changed`}</th></tr></thead>
      <tbody>${names.map((name) => html`<tr key=${name}>
        <th scope="row">${labelOf(name)}</th>
        <td>${data[name].commit ? data[name].author.name : t`Not committed yet`}${data[name].date && html`, ${" "}
          <time datetime=${data[name].date} title=${timestamp(data[name].date)}>${ago(data[name].date)}</time>`}</td>
      </tr>`)}</tbody>
    </table>`;
}
