/** The list resource for the documents of a content type. The modules in list/ display it. */

import { addressTo } from "../addresses.js";
import { mayRestore } from "../deleted/restoring.js";
import { plural, t } from "../language.js";
import { inSentence } from "../text.js";
import { rightsOf } from "./rights.js";
import { html } from "../vendor/preact.js";
import { columnsOf, filterables, usualColumns } from "./attributes.js";
import { actionsOf } from "./bulk.js";
import { loadRows, queryOf } from "./rows.js";
import { STATUS_OPTIONS, StatusMark } from "./status.js";

/**
 * @typedef {import("../model.js").Model} Model
 * @typedef {import("../model.js").Type} Type
 * @typedef {import("../list/resource.js").Choice} Choice
 * @typedef {import("../list/resource.js").Column} Column
 * @typedef {import("../list/resource.js").Resource} Resource
 * @typedef {import("../list/state.js").ListState} ListState
 */

const NEWEST = "updatedAt:desc";

/** @type {Column} */
const STATUS = {
  name: "status",
  label: t`Status`,
  type: "",
  sort: "",
  cell: (row) => html`<${StatusMark} status=${/** @type {import("./rows.js").DocumentRow} */ (row).status} />`,
};

/**
 * The resources by content type. Each type has only one, because responses are cached by resource.
 * @type {WeakMap<Type, Resource>}
 */
const resources = new WeakMap();

/**
 * @param {Model} model
 * @param {Type} type  A content type of that model.
 */
export function documentsOf(model, type) {
  const resource = resources.get(type) ?? described(model, type);
  resources.set(type, resource);
  return resource;
}

/** @param {Model} model @param {Type} type @returns {Resource} */
function described(model, type) {
  const columns = columnsOf(model, type);
  const filters = filterables(model, type);
  const name = type.title ?? "documentId";
  return {
    name: type.name,
    heading: type.plural,
    countText: (count) => plural(count, { one: "{0} document", other: "{0} documents" }),
    selectionLabel: t`Selected documents`,
    title: { name: "", label: type.title ? t`Title` : t`Document`, type: "", sort: name },
    fixed: model.seesDrafts(type) ? [STATUS] : [],
    columns,
    usualColumns: usualColumns(columns),
    filters,
    choices: choicesOf(model, type),
    usualSort: NEWEST,
    isSingle: type.single,
    emptyText: type.single ? t`Not created yet` : t`No documents yet`,
    placeNote: ({ choices }) => inLocale(model.localeOf(type, choices.locale)),
    address: (params) => addressTo("list", { type: type.name }, params),
    addressOf: ({ id }, state) => addressTo("document", { type: type.name, id }, localeIn(state)),
    create: (state) => {
      if (!rightsOf(model, type, true).create) return null;
      const to = addressTo("create", { type: type.name }, localeIn(state));
      return { label: t`New ${inSentence(type.label)}`, to };
    },
    links: type.single ? [] : linksOf(model, type),
    actions: actionsOf(model, type),
    query: (state, shown) => queryOf(model, type, filters, state, shown),
    load: (query, shown, signal) => loadRows(model, type, query, shown, signal),
  };
}

/** @param {Model} model @param {Type} type */
function linksOf(model, type) {
  const to = addressTo("deleted", { type: type.name });
  if (mayRestore(model, type)) return [{ label: t`Deleted documents`, to }];
  const isElsewhere = !model.isServed && ["read", "restore"].every((action) => model.mayServed("history", action));
  return isElsewhere ? [{ label: t`Deleted documents: only on the live site`, to: "" }] : [];
}

/** @param {Model} model @param {Type} type @returns {Choice[]} */
function choicesOf(model, type) {
  /** @type {Choice[]} */
  const choices = [];
  if (type.localized && model.locales.length > 1) {
    const options = model.locales.map((locale) => ({ value: locale.code, label: locale.name }));
    choices.push({ name: "locale", label: t`Language`, usual: model.defaultLocale, options });
  }
  if (model.seesDrafts(type)) {
    const options = [{ value: "", label: t`All statuses` }, ...STATUS_OPTIONS];
    choices.push({ name: "status", label: t`Status`, usual: "", options, narrows: true });
  }
  return choices;
}

/** @param {ListState} state @returns {Record<string, string>} */
const localeIn = ({ choices }) => (choices.locale ? { locale: choices.locale } : {});

/** @param {string} locale */
const inLocale = (locale) => (locale ? ` ${t`in ${locale}`}` : "");
