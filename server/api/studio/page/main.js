/**
 * The studio: the page where editors work. This module begins it; this is how it hangs together.
 *
 *   main.js ── app.js ── who is here? ── sign-in.js                nobody yet
 *                │                    └─ shell.js ── pages.js      the frame, and the page in it
 *                └─ model.js: what GET /access says: types, permissions, locales
 *
 * - api.js is the one place that talks to the server, by its public REST API, and base.js has its address.
 * - store/requests.js has what pages have requested, and what is under way; store/messages.js what they say of it.
 * - list/ and form/ show any resource, by a description: list/resource.js, form/resource.js. documents/ describes
 *   content types.
 * - router.js: the address is the state, with the version of the site (a branch or a past commit). A page is shown for
 *   an address, and whatever a page wants to keep over a reload (filters, sort, locale) it keeps there, by `navigate`.
 * - pages.js is the table of addresses and pages. A new page is a module and a line in that table. All but the first
 *   are loaded when they are first shown; ahead.js has those come before that which most people go on to.
 * - Each page is a function component of Preact, written with `html` (htm) instead of JSX, so that there is no
 *   step between these files and the browser. What they import of Preact is in vendor/preact.js.
 * - states.js has what pages show while they wait, when there is nothing, and when something went wrong.
 * - What all pages need of the site (the model, the overview) comes by the context of context.js.
 */

import { App } from "./app.js";
import { keepFocus } from "./focus.js";
import { narrowPolicy } from "./policy.js";
import { chosenTheme, showTheme } from "./theme.js";
import { html, render } from "./vendor/preact.js";

narrowPolicy();
showTheme(chosenTheme());
const place = /** @type {HTMLElement} */ (document.getElementById("studio"));
render(html`<${App} />`, place);
keepFocus(place);
