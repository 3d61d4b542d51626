/**
 * The pages, by the names that addresses.js has for them. To add one, write a component in a module of its own and
 * a line in both tables. It gets the values of its address by their names, and `params`, those of the query.
 */

import { Home } from "./home.js";
import { later } from "./later.js";

// The page of a new document becomes that of the document, so both are one.
const DocumentPage = later("documents/document-page.js", "DocumentPage");

/** @type {Record<string, any>} */
export const PAGES = {
  home: Home,
  problems: later("site/problems-page.js", "ProblemsPage"),
  changes: later("site/changes-page.js", "ChangesPage"),
  list: later("documents/list-page.js", "ListPage"),
  create: DocumentPage,
  deleted: later("deleted/deleted-page.js", "DeletedPage"),
  document: DocumentPage,
};
