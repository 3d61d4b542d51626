/** What the site is, for whoever is here: the answer of GET /access, with what pages ask of it. */

import { ask } from "./api.js";
import { currentVersion } from "./router.js";

/** Actions that change content, and subjects that are about the files that are served. */
const CHANGES = ["create", "update", "updateDraft", "delete", "upload", "destroy"];
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
 * @property {string} name  Its singular API id, which is its part of addresses and the subject of permissions.
 * @property {string} label  What people call one of its documents, or the document that it is.
 * @property {string} plural  What people call several of them.
 * @property {string} path  Where the API has it: "/api/articles".
 * @property {boolean} single
 * @property {boolean} drafts  Whether its documents can be drafts.
 * @property {boolean} localized
 * @property {string | null} title  The attribute that names a document.
 * @property {string} preview  The template of the addresses of previews, "" where there is none.
 * @property {Record<string, Attribute>} attributes
 */

/**
 * @typedef {{code: string, name: string, isDefault: boolean}} Locale
 * @typedef {{kind: "public" | "user" | "token" | "owner", name: string, email?: string, role?: string}} Caller
 */

/** The site as its caller may see it. */
export class Model {
  /** @param {any} access @param {import("./router.js").Version} version */
  constructor(access, version) {
    this.version = version;
    /** @type {string} */
    this.siteName = access.site.name;
    /** @type {Locale[]} */
    this.locales = access.site.locales;
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
    /** @type {Record<string, {label: string, attributes: Record<string, Attribute>}>} */
    this.components = Object.fromEntries(access.components.map(componentOf));
  }

  /** @returns {Promise<Model>} */
  static async load() {
    return new Model((await ask("access")).data, currentVersion());
  }

  /** The types whose documents may be listed, which is what the studio shows. */
  get listed() {
    return this.types.filter((type) => this.may(type, "find"));
  }

  /** @param {string} name */
  typeNamed(name) {
    return this.listed.find((type) => type.name === name);
  }

  /**
   * Whether the caller may do something with documents of a type.
   * @param {Type} type
   * @param {string} action
   */
  may(type, action) {
    return this.allows(type.name, action);
  }

  /**
   * Whether the caller may do something with anything else, such as "upload" or "history".
   * @param {string} subject
   * @param {string} action
   */
  allows(subject, action) {
    if (!this.permissions[subject]?.includes(action)) return false;
    if (this.isServed) return true;
    if (OF_SERVED.includes(subject)) return false;
    return !CHANGES.includes(action) || (this.version.branch !== "" && this.#mayWriteBranch);
  }

  /** Whether it is the version that is served, and not another branch or a past commit. */
  get isServed() {
    return !this.version.branch && !this.version.at;
  }

  /** Whether nobody can change anything, since it is a past state of the site. */
  get isPast() {
    return this.servedAt !== null || this.version.at !== "";
  }

  get #mayWriteBranch() {
    return this.permissions.branch?.includes("update") ?? false;
  }

  /**
   * Whether there are drafts of a type that the caller may see.
   * @param {Type} type
   */
  seesDrafts(type) {
    return type.drafts && this.may(type, "readDraft");
  }

  /**
   * The parameter of reads of a type: whoever may see drafts sees them, others what is published.
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
   * The name of the locale that a list of a type shows, "" if all documents are in one.
   * @param {Type} type
   * @param {string} [code]  That of the locale; "" for the default one.
   */
  localeOf(type, code = "") {
    if (!type.localized || this.locales.length < 2) return "";
    const shown = code || this.defaultLocale;
    return this.locales.find((locale) => locale.code === shown)?.name ?? shown;
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
 * A display name in the plural, as far as the API id tells: "Category" and "categories" → "Categories".
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
