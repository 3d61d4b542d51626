/**
 * The pages, by the names that addresses.js has for them. To add one, write a component in a module of its own and
 * a line in both tables. It gets the values of its address by their names, and `params`, those of the query.
 */

import { Home } from "./home.js";
import { later } from "./later.js";

// The page of a new document becomes that of the document, so both are one.
const DocumentPage = later(() => import("./form/document-page.js").then((module) => module.DocumentPage));

/** @type {Record<string, any>} */
export const PAGES = {
  home: Home,
  problems: later(() => import("./site/problems-page.js").then((module) => module.ProblemsPage)),
  changes: later(() => import("./site/changes-page.js").then((module) => module.ChangesPage)),
  list: later(() => import("./list.js").then((module) => module.List)),
  create: DocumentPage,
  deleted: later(() => import("./deleted/deleted-page.js").then((module) => module.DeletedPage)),
  document: DocumentPage,
};
