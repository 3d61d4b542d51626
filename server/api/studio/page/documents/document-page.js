/** The page of a document: its form and its actions. */

import { addressTo } from "../addresses.js";
import { useStudio } from "../context.js";
import { Question } from "../dialog.js";
import { OtherKeys } from "../file/other-keys.js";
import { Review, useReview } from "../file/review.js";
import { useEditing } from "../form/editing.js";
import { Fields } from "../form/fields.js";
import { useWantedField } from "../form/focus.js";
import { KeptNotice, useKeeping } from "../form/keeping.js";
import { Lost, LostOfDeleted } from "../form/lost.js";
import { useFirstError, useGuard, useSaveKey } from "../form/page.js";
import { changedNames } from "../form/values.js";
import { t } from "../language.js";
import { FieldsOfOthers, People, useFieldsOfOthers } from "../presence/people.js";
import { usePresence } from "../presence/presence.js";
import { navigate } from "../router.js";
import { Failure, Loading, NoContent } from "../states.js";
import { reloadContent } from "../store/requests.js";
import { inSentence, titleOf } from "../text.js";
import { html, useCallback, useEffect, useMemo } from "../vendor/preact.js";
import { Actions } from "./actions.js";
import { formOf } from "./form.js";
import { useChanges } from "./live.js";
import { Locales } from "./locales.js";
import { PanelAside, PanelButtons, mayReadFiles, panelNamed } from "./panels.js";
import { statusOf } from "./reading.js";
import { rightsOf } from "./rights.js";

const LEAVE = t`Your changes are not saved. They are kept in this browser.`;

/** @param {{type: string, id?: string, params: URLSearchParams}} props */
export function DocumentPage({ type: name, id = "", params }) {
  const { model, reload } = useStudio();
  const type = model.typeNamed(name);
  const locale = params.get("locale") ?? model.defaultLocale;
  if (!type) return html`<${NoContent} name=${name}><${LostOfDeleted} ...${{ model, name, id, locale }} /><//>`;
  const from = id ? "" : (params.get("from") ?? "");
  const [panel, wanted] = [params.get("panel") ?? "", params.get("field") ?? ""];
  return html`<${Document} ...${{ model, type, id, locale, from, panel, wanted, renew: reload }} key=${locale} />`;
}

/**
 * @param {{model: import("../model.js").Model, type: import("../model.js").Type, id: string, locale: string,
 *   from: string, panel: string, wanted: string, renew: () => Promise<boolean>}} props
 */
function Document({ model, type, id, locale, from, panel, wanted, renew }) {
  const drafts = model.seesDrafts(type);
  const subject = useMemo(() => ({ model, type, id, locale, drafts, from, renew }), [model, type, id, locale, from]);
  const resource = useMemo(() => formOf(subject), [subject]);
  const done = useCallback(
    (/** @type {string} */ made) => {
      reloadContent();
      /** @type {Record<string, string>} */
      const params = locale === model.defaultLocale ? {} : { locale };
      const address = addressTo("document", { type: type.name, id: made }, params);
      if (made !== id) navigate(address, { replace: true, unguarded: true, stays: true });
    },
    [type, id],
  );
  const editing = useEditing(resource, done);
  const { state } = editing;
  const changed = changedNames(state.base, state.values);
  const keeping = useKeeping(resource, editing);
  const rights = rightsOf(model, type, !id);
  const title = id ? titleOf(type, { ...state.version?.document, ...state.values }) : newTitle(type, state.values);

  useEffect(() => {
    document.title = `${title} · ${model.siteName}`;
  }, [title]);
  const { people, field, hear } = usePresence(subject, Boolean(state.version));
  const fieldsOfOthers = useFieldsOfOthers(subject, people);
  useChanges(state.version && model.isServed ? type.name : "", id, editing.hear, renew, hear);
  const [leave, stay] = useGuard(changed.length > 0 && rights.write);
  const review = useReview(subject, editing, mayReadFiles(model));
  useSaveKey(rights.write ? review.send : undefined);
  useFirstError(state);
  useWantedField(wanted, state.phase === "ready");

  const { version } = state;
  const status = useMemo(() => version && type.drafts ? statusOf(model, type, version) : undefined, [version]);
  if (state.phase === "failed") {
    return html`<div class="page">
      <header class="page-head"><h1 tabindex="-1">${type.label}</h1></header>
      <${Failure} error=${state.failure} again=${editing.load} />
    </div>`;
  }
  const open = state.phase === "ready" ? panelNamed(subject, panel, Boolean(state.version)) : null;
  const page = html`<div class="page document">
    <header class="page-head">
      <div class="document-top">
        <p class="document-type"><a href=${addressTo("list", { type: type.name })}>${type.plural}</a></p>
        <${People} ...${{ people, subject, field }} />
      </div>
      <h1 tabindex="-1">${state.phase === "loading" ? type.label : title}</h1>
      <${Locales} subject=${subject} state=${state} />
      ${state.phase === "ready" && html`<${PanelButtons} ...${{ subject, open }}
        isThere=${Boolean(state.version)} />`}
    </header>
    ${state.phase === "loading"
      ? html`<${Loading} />`
      : html`<${Actions} ...${{ subject, editing, status, rights, changed }} send=${review.send} />
          <${KeptNotice} keeping=${keeping} values=${state.values} />
          <${Lost} values=${state.lost}
            discard=${(/** @type {Record<string, any>} */ lost) => editing.update({ lost })} />
          <${FieldsOfOthers.Provider} value=${fieldsOfOthers}>
            <${Fields} ...${{ resource, editing, changed }} mayWrite=${rights.write} />
            ${state.version && mayReadFiles(model) && html`<${OtherKeys} ...${{ subject, editing }} />`}
          <//>`}
  </div>`;
  return html`<div class=${open ? `beside ${open.wide ? "is-wide" : ""}` : ""}>
    ${page}
    ${review.reviewed !== null && html`<${Review} ...${{ subject, editing }} publishes=${review.reviewed}
      close=${review.close} />`}
    ${open && html`<${PanelAside} panel=${open} subject=${subject} editing=${editing} />`}
    ${leave && html`<${Question} title=${t`Leave the page?`} text=${LEAVE} label=${t`Leave`} confirm=${leave}
      close=${stay} />`}
  </div>`;
}

/** @param {import("../model.js").Type} type @param {Record<string, any>} values */
function newTitle(type, values) {
  const typed = type.title ? values[type.title] : "";
  return typeof typed === "string" && typed ? typed : t`New ${inSentence(type.label)}`;
}
