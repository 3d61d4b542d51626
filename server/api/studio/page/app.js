/** The root of the studio: it shows the sign-in page or, if a user is signed in, the studio. */

import { ApiError, whenSessionEnds } from "./api.js";
import { addressTo, placeAt } from "./addresses.js";
import { StudioContext } from "./context.js";
import { t } from "./language.js";
import { Model } from "./model.js";
import { useOverview } from "./overview.js";
import { signOut, useKey } from "./session.js";
import { PAGES } from "./pages.js";
import { SERVED, currentPlace, currentVersion } from "./router.js";
import { Shell } from "./shell.js";
import { SignIn } from "./sign-in.js";
import { Failure, Loading } from "./states.js";
import { SIGN_IN, showNotice } from "./store/messages.js";
import { html, useCallback, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact.js";

/**
 * @typedef {{model?: Model, error?: any}} State
 */

export function App() {
  const [state, set] = useState(/** @type {State} */ ({}));
  const latest = useRef(state.model);
  const hasSignedIn = useRef(false);
  latest.current = state.model;
  const load = useCallback(async (/** @type {string} */ notice = "") => {
    try {
      const model = await Model.load();
      showNotice(SIGN_IN, notice);
      const isOther = model.text !== latest.current?.text;
      if (isOther) set({ model });
      return isOther;
    } catch (error) {
      // A page that is shown stays: it may contain unsaved work.
      if (!latest.current && (!(error instanceof ApiError) || error.status !== 401)) set({ error });
      return false;
    }
  }, []);
  // A caller without a session is the public again. GET /access then returns how to sign in. This effect is the first,
  // because the response that index.html has requested may say so at once.
  useLayoutEffect(() =>
    whenSessionEnds(() => forget().then(() => load(t`Your session has ended. Sign in again.`))), []);
  useLayoutEffect(() => {
    const page = PAGES[placeAt(currentPlace().parts)?.name ?? ""];
    page?.load?.().catch(() => undefined); // The page tries again when it is shown.
    useKey().then(
      (refused) => load(refused?.message),
      (error) => set({ error }),
    );
  }, []);

  const leave = useCallback(() =>
    signOut().then(() => load(), (error) => error.status !== 0 && set({ error })), []); // The page says so, and stays.
  const { model, error } = state;
  if (error) {
    const { as } = currentVersion(); // The role may have been deleted, or the user may no longer see roles.
    return html`<main class="alone"><${Failure} error=${error} again=${() => load()} />
      ${as && html`<p><a class="past-link" href=${addressTo("home", {}, {}, SERVED)}>
        ${t`Leave the view as ${as}`}</a></p>`}
    </main>`;
  }
  if (!model) return html`<${Loading} />`;
  if (model.caller.kind === "public" && placeAt(currentPlace().parts)?.name === "invitation")
    return html`<main><${PAGES.invitation} /></main>`;
  if (model.caller.kind === "public") {
    hasSignedIn.current = true;
    return html`<${SignIn} model=${model} done=${() => load()} />`;
  }
  return html`<${Inside} model=${model} signOut=${leave} reload=${load} hasSignedIn=${hasSignedIn.current} />`;
}

/**
 * @param {{model: Model, signOut: () => void, reload: () => Promise<boolean>, hasSignedIn: boolean}} props
 */
function Inside({ model, signOut, reload, hasSignedIn }) {
  const overview = useOverview(model);
  const studio = useMemo(() => ({ model, signOut, reload, overview }), [model, signOut, reload, overview]);
  return html`<${StudioContext.Provider} value=${studio}>
    <${Shell} hasSignedIn=${hasSignedIn} />
  </${StudioContext.Provider}>`;
}

/** Let the browser delete a cookie that is no longer valid. */
function forget() {
  return signOut().catch(() => undefined);
}
