/**
 * The frame of every page, with the site's name, the content types and the user. In a narrow window, a button opens it.
 */

import { addressTo, placeAt } from "./addresses.js";
import { loadAhead } from "./ahead.js";
import { VersionNotice, VersionSwitch } from "./branches/switch.js";
import { useStudio } from "./context.js";
import { ConnectionNotice } from "./connection/notice.js";
import { Icon } from "./icons.js";
import { t } from "./language.js";
import { PAGES } from "./pages.js";
import { Palette, usePalette } from "./palette.js";
import { PreferencesButton } from "./preferences.js";
import { Link, usePlace } from "./router.js";
import { SiteLinks } from "./site/links.js";
import { Empty } from "./states.js";
import { counted, timestamp } from "./text.js";
import { UndoBar } from "./undo/undo.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";

/** @param {{hasSignedIn: boolean}} props  Whether the page follows the form for signing in. */
export function Shell({ hasSignedIn }) {
  const { model } = useStudio();
  const place = usePlace();
  const [open, setOpen] = useState(false);
  const [finding, setFinding] = usePalette();
  const [loaded, setLoaded] = useState(0);
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const path = place.parts.join("/");
  const found = placeAt(place.parts);
  const page = usePage(path, place.stays);

  useEffect(() => setOpen(false), [path]);
  useEffect(loadAhead, []); // The frame is painted by then.
  useTitle(main, page, `${path} ${loaded}`, model.siteName, hasSignedIn);
  return html`<div class=${`shell ${model.version.branch ? "is-branch" : ""}`}>
    <a class="skip" href="#main" onClick=${(/** @type {Event} */ e) => skipTo(e, main.current)}>
      ${t`Skip to content`}</a>
    <header class="bar">
      <button class="icon-button" type="button" aria-expanded=${open} aria-controls="side"
        aria-label=${open ? t`Close the menu` : t`Open the menu`} onClick=${() => setOpen(!open)}>
        <${Icon} name=${open ? "close" : "menu"} />
      </button>
      <span class="bar-name">${model.siteName}</span>
      <${VersionSwitch} />
    </header>
    <${Side} open=${open} current=${place.parts[0]} page=${found?.name ?? ""} close=${() => setOpen(false)}
      find=${() => setFinding(true)} />
    <main class="main" id="main" tabindex="-1" ref=${main}>
      ${model.servedAt && html`<p class="past-notice">
        ${t`This is the site as it was on ${html`<time datetime=${model.servedAt.date}
          title=${model.servedAt.commit}>${timestamp(model.servedAt.date)}</time>`}. It is read-only.`}</p>`}
      ${!model.isServed && html`<${VersionNotice} />`}
      ${found
        ? html`<${PAGES[found.name]} ...${found.values} params=${place.params} key=${page}
            onLoaded=${() => setLoaded((times) => times + 1)} />`
        : html`<${NoPage} />`}
    </main>
    <${UndoBar} />
    <${ConnectionNotice} />
    ${finding && html`<${Palette} close=${() => setFinding(false)} />`}
  </div>`;
}

/** @param {{open: boolean, current?: string, page: string, close: () => void, find: () => void}} props */
function Side({ open, current, page, close, find }) {
  const { model, overview, signOut } = useStudio();
  const side = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => side.current?.querySelector(".side-link[aria-current]")?.scrollIntoView({ block: "nearest" }),
    [current, page]);
  const many = model.listed.filter((type) => !type.single);
  const one = model.listed.filter((type) => type.single);
  /** @param {KeyboardEvent} event */
  const leave = (event) => event.key === "Escape" && close();
  return html`<div class=${`side ${open ? "is-open" : ""}`} id="side" ref=${side} onKeyDown=${leave}>
    <${Link} class="side-name" to=${addressTo("home")} aria-current=${current ? undefined : "page"}>
      ${model.siteName}
    <//>
    <${VersionSwitch} />
    <button class="side-find" type="button" onClick=${find} aria-keyshortcuts="Control+K">
      <${Icon} name="search" />
      <span class="side-text">${t`Go to`}</span>
      <kbd>Ctrl K</kbd>
    </button>
    <nav class="side-types" aria-label=${t`Content`}>
      ${many.length > 0 && html`<${Types} types=${many} label=${t`Collections`} ...${{ current, overview }} />`}
      ${one.length > 0 && html`<${Types} types=${one} label=${t`Single pages`} ...${{ current, overview }} />`}
      <${SiteLinks} model=${model} current=${page} />
    </nav>
    <div class="side-foot">
      <span class="side-who">
        ${model.caller.kind === "user"
          ? html`<${Link} class="side-person" to=${addressTo("sessions")}
            title=${t`My sessions`}>${model.caller.name}<//>`
          : html`<span class="side-person">${nameOf(model.caller)}</span>`}
        ${model.caller.role && html`<span class="side-role">${model.caller.role}</span>`}
      </span>
      <${PreferencesButton} />
      <button class="icon-button" type="button" aria-label=${t`Sign out`} title=${t`Sign out`} onClick=${signOut}>
        <${Icon} name="leave" />
      </button>
    </div>
  </div>`;
}

/** @param {import("./model.js").Caller} caller */
function nameOf({ kind, name }) {
  if (kind === "owner") return t`Owner of this machine`;
  return kind === "role" ? t`As the role ${name}` : name;
}

/** @param {{types: any[], label: string, current?: string, overview: any}} props */
function Types({ types, label, current, overview }) {
  const { model } = useStudio();
  return html`<h2 class="side-label">${label}</h2>
    <ul class="side-list">
      ${types.map((type) => html`<li key=${type.name}>
        <${Link} class="side-link" to=${type.single && overview?.counts[type.name]
          ? addressTo("document", { type: type.name, id: type.name })
          : addressTo("list", { type: type.name })}
          aria-current=${current === type.name ? "page" : undefined}>
          <span class="side-text">${type.plural}</span>
          ${!type.single && html`<span class="side-count" title=${countedIn(model.localeOf(type))}>
            ${countOf(overview?.counts[type.name])}</span>`}
        <//>
      </li>`)}
    </ul>`;
}

/** @param {number | undefined} count */
const countOf = (count) => (count === undefined ? "" : counted(count));

/** @param {string} locale */
const countedIn = (locale) => (locale ? t`Documents in ${locale}` : undefined);

function NoPage() {
  return html`<div class="page">
    <header class="page-head"><h1 tabindex="-1">${t`Page not found`}</h1></header>
    <${Empty} title=${t`There is no page at this address`}>
      <${Link} to=${addressTo("home")}>${t`Go to the start page`}<//>
    <//>
  </div>`;
}

/**
 * Return the number of the current page. It changes with the path, unless the page stays open, as after a new document
 * was saved.
 * @param {string} path
 * @param {boolean} stays
 */
function usePage(path, stays) {
  const shown = useRef({ path, page: 0 });
  if (shown.current.path !== path) shown.current = { path, page: shown.current.page + (stays ? 0 : 1) };
  return shown.current.page;
}

/**
 * Set the title of the browser tab, and move the focus of screen readers to the heading when a page is shown. If the
 * page has to be loaded first, wait for its heading. If a dialog is open by then, the focus stays in the dialog.
 * @param {{current: HTMLElement | null}} main
 * @param {number} page
 * @param {string} shown  A text that changes whenever the page's heading may change.
 * @param {string} siteName
 * @param {boolean} takesFocus  Whether the heading of the first page gets the focus too.
 */
function useTitle(main, page, shown, siteName, takesFocus) {
  const before = useRef(takesFocus ? 0 : page);
  useLayoutEffect(() => {
    const heading = /** @type {HTMLElement | null} */ (main.current?.querySelector("h1"));
    document.title = `${heading?.textContent ?? t`Studio`} · ${siteName}`;
    if (!heading || before.current === page) return;
    before.current = page;
    if (!document.activeElement?.closest("dialog")) heading.focus({ preventScroll: true });
  }, [page, shown, siteName]);
}

/**
 * Move the focus to the content without changing the URL, because another URL would be another page.
 * @param {Event} event
 * @param {HTMLElement | null} target
 */
function skipTo(event, target) {
  event.preventDefault();
  target?.focus();
}
