/** The site as its caller may see it: the response of GET /access, with functions that pages need. */

import { ask } from "./api.js";
import { LANGUAGE } from "./language.js";
import { enableTransformations } from "./pictures.js";
import { currentVersion } from "./router.js";

/** Actions that change content, actions in a view as a role, and permission subjects that concern the served files. */
const CHANGES = ["create", "update", "updateDraft", "delete", "upload", "destroy"];
const READS = ["find", "findOne", "readDraft", "read"];
const OF_SERVED = ["history", "source", "problems"];

/**
 * @typedef {object} Attribute
 * @property {string} type
 * @property {boolean} [private]
 * @property {boolean} [multiple]
 * @property {boolean} [repeatable]
 * @property {string} [target]
 * @property {string} [relation]
 * @property {string} [component]
 * @property {string[]} [components]
 * @property {string[]} [enum]
 * @property {boolean} [required]
 * @property {any} [default]
 * @property {number | string} [min]
 * @property {number | string} [max]
 * @property {number} [minLength]
 * @property {number} [maxLength]
 * @property {string} [regex]
 * @property {string} [targetField]
 * @property {string} [mappedBy]
 * @property {string[]} [allowedTypes]
 * @property {{i18n?: {localized?: boolean}}} [pluginOptions]
 */

/**
 * @typedef {object} Type
 * @property {string} uid
 * @property {string} name  The singular API id. It is used in URLs, and as the subject of permissions.
 * @property {string} label  The name of a single document.
 * @property {string} plural  The name of several documents.
 * @property {string} path  The API's path, such as "/api/articles".
 * @property {boolean} single
 * @property {boolean} drafts  Whether documents can have drafts.
 * @property {boolean} localized
 * @property {string | null} title  The attribute that is the title of a document.
 * @property {string} preview  The template for the URLs of previews, or "" if there is none.
 * @property {Record<string, Attribute>} attributes
 */

/**
 * @typedef {{code: string, name: string, isDefault: boolean}} Locale
 * @typedef {{kind: "public" | "user" | "token" | "owner" | "role", name: string, email?: string, role?: string}} Caller
 */

/** The labels of all content types that this page has seen, by name. @type {Map<string, string>} */
export const seenTypes = new Map();

/** The parts of the site that its caller may see. */
export class Model {
  /** @param {any} access @param {import("./router.js").Version} version */
  constructor(access, version) {
    this.version = version;
    this.text = JSON.stringify(access);
    /** @type {string} */
    this.siteName = access.site.name;
    /** @type {Locale[]} */
    this.locales = access.site.locales.map(localeOf);
    /** @type {{default: number, max: number}} */
    this.pageSize = access.site.pageSize;
    /** @type {{commit: string, date: string} | null} */
    this.servedAt = access.site.servedAt;
    /** @type {Caller} */
    this.caller = access.caller;
    /** @type {Record<string, string[]>} */
    this.permissions = access.permissions;
    /** @type {Type[]} */
    this.types = access.contentTypes.map(typeOf).sort(byLabel);
    for (const { name, label } of this.types) seenTypes.set(name, label);
    /** @type {Record<string, {label: string, attributes: Record<string, Attribute>}>} */
    this.components = Object.fromEntries(access.components.map(componentOf));
  }

  /** @returns {Promise<Model>} */
  static async load() {
    const { data: served } = await ask("access", { via: earlyResponse });
    const { branch, at } = currentVersion();
    const data = (branch || at) && served.caller.kind !== "public" ? await accessAt(branch || at, served) : served;
    enableTransformations(data.site.transformsImages);
    return new Model(data, currentVersion());
  }

  /** The content types whose documents the caller may list. The studio shows only these. */
  get listed() {
    return this.types.filter((type) => this.may(type, "find"));
  }

  /** @param {string} name */
  typeNamed(name) {
    return this.listed.find((type) => type.name === name);
  }

  /**
   * Return whether the caller has a permission for documents of a content type.
   * @param {Type} type
   * @param {string} action
   */
  may(type, action) {
    return this.allows(type.name, action);
  }

  /**
   * Return whether the caller has a permission for another subject, such as "upload" or "history".
   * @param {string} subject
   * @param {string} action
   */
  allows(subject, action) {
    if (!this.mayServed(subject, action)) return false;
    if (!this.version.branch && !this.version.at) return true;
    if (OF_SERVED.includes(subject)) return false;
    return !CHANGES.includes(action) || (this.version.branch !== "" && this.mayBranch("update"));
  }

  /**
   * Return whether the caller has a permission in the served version, whatever version is shown.
   * @param {string} subject
   * @param {string} action
   */
  mayServed(subject, action) {
    if (this.version.as && !READS.includes(action)) return false;
    return this.permissions[subject]?.includes(action) ?? false;
  }

  /**
   * Return whether the caller has a permission for git branches. If a content type is called `branch`, the permission
   * refers to its documents, and only the owner may use git branches.
   * @param {string} action
   */
  mayBranch(action) {
    return this.maySite("branch", action);
  }

  /**
   * Return whether the caller has a permission for a subject whose name a content type can have, such as "token". If
   * there is such a content type, the permission refers to its documents.
   * @param {string} subject
   * @param {string} action
   */
  maySite(subject, action) {
    if (this.types.some((type) => type.name === subject)) return this.caller.kind === "owner";
    return this.mayServed(subject, action);
  }

  /** Whether this is the served version, and not another branch, a past commit, or what a role would see. */
  get isServed() {
    return !this.version.branch && !this.version.at && !this.version.as;
  }

  /** Whether this is a past state of the site, which can't be changed. */
  get isPast() {
    return this.servedAt !== null || this.version.at !== "" || Boolean(this.version.as);
  }

  /**
   * Return whether a content type has drafts that the caller may see.
   * @param {Type} type
   */
  seesDrafts(type) {
    return type.drafts && this.may(type, "readDraft");
  }

  /**
   * Return the parameter `status` for reads: drafts if the caller may see them, otherwise published versions.
   * @param {Type} type
   * @returns {{status?: string}}
   */
  statusParam(type) {
    return this.seesDrafts(type) ? { status: "draft" } : {};
  }

  get defaultLocale() {
    return this.locales.find((locale) => locale.isDefault)?.code ?? this.locales[0].code;
  }

  /**
   * Return the name of the locale that a list shows, or "" if the content type is not localized.
   * @param {Type} type
   * @param {string} [code]  The code of the locale, or "" for the default locale.
   */
  localeOf(type, code = "") {
    if (!type.localized || this.locales.length < 2) return "";
    const shown = code || this.defaultLocale;
    return this.locales.find((locale) => locale.code === shown)?.name ?? shown;
  }
}

/**
 * Return what the caller may see on a branch or at a past commit, with the content types there. If they can't be read,
 * for example because they are invalid, return those of the served version.
 * @param {string} at
 * @param {any} served
 */
async function accessAt(at, served) {
  try {
    return (await ask("access", { query: { at } })).data;
  } catch (error) {
    if (error.status === 0) throw error;
    return served;
  }
}

/**
 * Return the response to the request that index.html sends before the browser has loaded any module. Send a request if
 * there is none, or if the response has been used.
 * @param {URL} url
 * @param {RequestInit} init
 * @returns {Promise<Response>}
 */
function earlyResponse(url, init) {
  /** @type {any} */
  const script = document.getElementById("access");
  const { response } = script;
  delete script.response;
  return response ?? fetch(url, init);
}

/** Return a locale with its name in the language of the studio. @param {Locale} locale @returns {Locale} */
function localeOf(locale) {
  const { code, name } = locale;
  if (LANGUAGE === "en") return locale;
  try {
    const translated = new Intl.DisplayNames([LANGUAGE], { type: "language", fallback: "none" }).of(code);
    return { ...locale, name: translated ? `${translated} (${code})` : name };
  } catch {
    return locale; // The code is not a language tag.
  }
}

/** @param {any} described @returns {Type} */
function typeOf(described) {
  const { schema } = described;
  return {
    uid: described.uid,
    name: schema.singularName,
    label: schema.displayName,
    plural: schema.kind === "singleType" ? schema.displayName : pluralOf(schema),
    path: described.path,
    single: schema.kind === "singleType",
    drafts: schema.draftAndPublish,
    localized: described.localized,
    title: described.titleAttribute,
    preview: described.preview ?? "",
    attributes: schema.attributes,
  };
}

/**
 * Return a display name in the plural, derived from the API ids if possible: "Category", "categories" → "Categories".
 * @param {{displayName: string, singularName: string, pluralName: string}} schema
 */
function pluralOf({ displayName, singularName, pluralName }) {
  const plain = displayName.toLowerCase().replaceAll(" ", "-");
  if (plain === pluralName) return displayName;
  if (plain !== singularName) return displayName;
  const words = pluralName.replaceAll("-", " ");
  return words[0].toUpperCase() + words.slice(1);
}

/** @param {any} described */
function componentOf(described) {
  return [described.uid, { label: described.schema.displayName, attributes: described.schema.attributes }];
}

/** @param {Type} a @param {Type} b */
function byLabel(a, b) {
  return a.plural.localeCompare(b.plural);
}
