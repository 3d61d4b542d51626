/**
 * The studio: the page where editors work. This module starts it. Its main modules are:
 *
 *   main.js ── app.js ── is a user signed in? ── sign-in.js                no
 *                │                            └─ shell.js ── pages.js      yes: the frame, and the page in it
 *                └─ model.js: the response of GET /access: content types, permissions, locales
 *
 * - api.js sends all requests to the server's public REST API; base.js has its URL.
 * - store/requests.js stores responses and pending requests for pages; store/messages.js stores messages about them.
 * - list/ and form/ display any resource that is described by list/resource.js or form/resource.js. documents/
 *   describes content types as such resources.
 * - router.js: the state of the studio is in the URL, including the version of the site (a branch or a past commit).
 *   The URL determines the page. To preserve data over a reload (filters, sort order, locale), a page stores it in the
 *   URL with `navigate`.
 * - pages.js is the table of URLs and pages. To add a page, add a module and a line in this table. All pages but the
 *   first are loaded when they are first shown. ahead.js loads the most common ones in advance.
 * - Each page is a Preact function component. It uses `html` (htm) instead of JSX, so that browsers can load these
 *   files without a build step. Preact is in vendor/preact.js.
 * - language.js translates the texts. Every text that a user can see is written as t`…` or plural(…).
 * - states.js displays pages that are loading, empty pages, and errors.
 * - context.js provides the data about the site that all pages need (the model, the overview).
 */

import { App } from "./app.js";
import { keepFocus } from "./focus.js";
import { showLanguage } from "./language.js";
import { narrowPolicy } from "./policy.js";
import { chosenTheme, showTheme } from "./theme.js";
import { html, render } from "./vendor/preact.js";

narrowPolicy();
showLanguage();
showTheme(chosenTheme());
const place = /** @type {HTMLElement} */ (document.getElementById("studio"));
render(html`<${App} />`, place);
keepFocus(place);
