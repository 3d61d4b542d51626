/**
 * The pages, by the names in addresses.js.
 *
 * To add a page, write its component in a new module, and add a line to both tables. The component receives the
 * variables in the URL by name, and the query parameters as `params`.
 */

import { Home } from "./home.js";
import { later } from "./later.js";

// Both pages have the same component, because the page of a new document becomes the page of the saved document.
const DocumentPage = later("documents/pages.js", "DocumentPage");

/** @type {Record<string, any>} */
export const PAGES = {
  home: Home,
  problems: later("site/problems-page.js", "ProblemsPage"),
  changes: later("site/changes-page.js", "ChangesPage"),
  media: later("media/media-page.js", "MediaPage"),
  branches: later("branches/branches-page.js", "BranchesPage"),
  branch: later("branches/branch-page.js", "BranchPage"),
  people: later("admin/users-page.js", "UsersPage"),
  roles: later("admin/roles-page.js", "RolesPage"),
  tokens: later("admin/tokens-page.js", "TokensPage"),
  sessions: later("admin/sessions-page.js", "SessionsPage"),
  settings: later("admin/settings-page.js", "SettingsPage"),
  webhooks: later("webhooks/webhooks-page.js", "WebhooksPage"),
  webhook: later("webhooks/webhook-page.js", "WebhookPage"),
  events: later("webhooks/events-page.js", "EventsPage"),
  types: later("types/types-page.js", "TypesPage"),
  invitation: later("admin/invitation-page.js", "InvitationPage"),
  list: later("documents/pages.js", "ListPage"),
  create: DocumentPage,
  deleted: later("deleted/deleted-page.js", "DeletedPage"),
  document: DocumentPage,
};
