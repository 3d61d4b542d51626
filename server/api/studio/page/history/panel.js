/** The panel with the history of a document: its versions, and the differences between two of them. */

import { ApiError } from "../api.js";
import { Icon } from "../icons.js";
import { t } from "../language.js";
import { Empty, Failure, Loading } from "../states.js";
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { statusOf } from "../documents/reading.js";
import { Blame } from "./blame.js";
import { CompareView } from "./compare-view.js";
import { VersionList } from "./version-list.js";
import { keyOf, useVersions } from "./versions.js";

/** @typedef {import("./versions.js").Version} Version */

/** @param {import("../documents/panels.js").PanelProps} props */
export function History({ subject, editing }) {
  if (subject.model.allows("history", "read")) return html`<${Versions} subject=${subject} editing=${editing} />`;
  if (!subject.model.isServed && subject.model.mayServed("history", "read")) {
    return html`<${Empty} title=${t`No history here`}>${t`The history is available only on the live site.`}<//>`;
  }
  return html`<${Empty} title=${t`Your role can't see the history`}>
    ${t`An administrator can grant it with history: [read] in site.yaml.`}<//>`;
}

/** @param {import("../documents/panels.js").PanelProps} props */
function Versions({ subject, editing }) {
  const { version } = editing.state;
  const versions = useVersions(subject, version?.etag ?? "");
  const [chosen, choose] = useState(/** @type {import("./compare-view.js").Chosen | null} */ (null));
  const { model, type, drafts } = subject;
  const status = useMemo(() => version && drafts && statusOf(model, type, version), [version]);
  const { list, error, retry } = versions;
  const all = useMemo(() => (list ? withNow(list, drafts, status === "draft") : []), [list, drafts, status]);
  const opener = useRef("");
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const target = chosen ? ".compare-back" : opener.current && `[data-version="${opener.current}"]`;
    if (target) /** @type {HTMLElement | null} */ (place.current?.querySelector(target))?.focus();
  }, [Boolean(chosen)]);
  if (error && !list) return html`<${Off} error=${error} again=${retry} />`;
  if (!list) return html`<${Loading} />`;
  /** @param {import("./compare-view.js").Chosen} pair */
  const open = (pair) => {
    opener.current = pair.right;
    choose(pair);
  };
  const draftBeside = { left: keyOf({ ...NOW, status: "published" }), right: keyOf({ ...NOW, status: "draft" }) };
  return html`<div class="history" ref=${place}>
    ${chosen
      ? html`<button class="button quiet compare-back" type="button" onClick=${() => choose(null)}>
            <${Icon} name="left" /> ${t`All versions`}</button>
          <${CompareView} ...${{ subject, editing, versions: all, chosen, choose }} />`
      : html`
          ${status === "modified" && html`<button class="button" type="button" data-version=${draftBeside.right}
            onClick=${() => open(draftBeside)}>${t`Compare the draft with the published version`}</button>`}
          <${VersionList} ...${{ subject, versions }}
            open=${(/** @type {string} */ right) => open({ left: "", right })} />
          <${Blame} subject=${subject} status=${status === "draft" ? "draft" : "published"}
            mark=${version?.etag ?? ""} />`}
  </div>`;
}

/** @type {Version} */
const NOW = { commit: "", status: "published", action: "now", who: "", date: null, message: "", attributes: [] };

/**
 * Return the versions, beginning with the current ones. The draft is newer than the published version.
 * @param {Version[]} list
 * @param {boolean} drafts
 * @param {boolean} unpublished
 */
function withNow(list, drafts, unpublished) {
  const [draft, published] = [{ ...NOW, status: /** @type {"draft"} */ ("draft") }, NOW];
  const now = [...(drafts ? [draft] : []), ...(unpublished ? [] : [published])];
  const keys = now.map(keyOf);
  const found = now.map((one) => list.find((version) => keyOf(version) === keyOf(one)) ?? one);
  return [...found, ...list.filter((version) => !keys.includes(keyOf(version)))];
}

/**
 * The message for a document without history.
 * @param {{error: any, again: () => void}} props
 */
function Off({ error, again }) {
  if (error instanceof ApiError && error.status === 409) {
    return html`<${Empty} title=${t`No history available`}>${error.message}<//>`;
  }
  if (error instanceof ApiError && error.status === 403) {
    return html`<${Empty} title=${t`Your role can't see this history`}>
      ${t`It contains drafts, which your role can't read.`}<//>`;
  }
  return html`<${Failure} error=${error} again=${again} />`;
}
