/** Requests about users, roles, tokens and settings, and the texts that several pages show about them. */

import { ApiError, ask } from "../api.js";
import { t } from "../language.js";
import { ago, labelOf } from "../text.js";

/**
 * @typedef {object} User
 * @property {number} id
 * @property {string} username
 * @property {string} email
 * @property {string} role
 * @property {boolean} blocked
 * @property {boolean} invited  Whether the user has no password yet.
 * @property {string | null} lastSeen
 * @property {number} sessions
 * @property {boolean} changeable
 * @property {string} version
 */

/**
 * @typedef {object} Role
 * @property {string} name
 * @property {string} label
 * @property {Record<string, string[]>} permissions
 * @property {number} users
 * @property {boolean} changeable
 */

/**
 * @typedef {object} Token
 * @property {string} name
 * @property {"full-access" | "read-only" | "custom"} type
 * @property {string[]} permissions
 * @property {string} createdAt
 * @property {string | null} expiresAt
 * @property {boolean} expired
 * @property {string | null} lastUsed
 * @property {boolean} branchOnly
 * @property {boolean} changeable
 */

/** @typedef {Record<string, boolean>} Edits  Whether permissions such as "article.find" are granted, if changed. */

/** Return whether a role has a permission such as "article.find". @param {Role} role @param {string} key */
export function isGranted(role, key) {
  const at = key.lastIndexOf(".");
  return role.permissions[key.slice(0, at)]?.includes(key.slice(at + 1)) ?? false;
}

/** @param {string} etag */
export const ifMatch = (etag) => ({ "If-Match": etag });

/** @param {number | string} id */
export const userPath = (id) => `users/${id}`;

/** Return when a user was last active. @param {string | null} time */
export const lastSeen = (time) => (time ? t`Last seen ${ago(time)}` : t`Never seen`);

/** The names of actions. */
const ACTION_LABELS = /** @type {Record<string, string>} */ ({
  find: t`List`,
  findOne: t`Open`,
  create: t`Create`,
  update: t`Change`,
  delete: t`Delete`,
  destroy: t`Delete`,
  upload: t`Upload`,
  count: t`Count`,
  read: t`Read`,
  write: t`Write`,
  restore: t`Restore`,
  commit: t`Commit`,
  merge: t`Merge`,
  fix: t`Fix`,
  revoke: t`Revoke`,
  send: t`Send`,
  rotate: t`Replace the secret`,
  register: t`Register`,
  changePassword: t`Change password`,
  forgotPassword: t`Request a new password`,
  resetPassword: t`Reset password`,
  sendEmailConfirmation: t`Request a confirmation e-mail`,
  emailConfirmation: t`Confirm e-mail address`,
  connect: t`Sign in through another service`,
  refresh: t`Renew the session`,
  logout: t`Sign out`,
  readDraft: t`See drafts`,
  updateDraft: t`Change drafts`,
  me: t`See own account`,
  updateMe: t`Change own account`,
  callback: t`Sign in`,
  getSessions: t`See own sessions`,
  revokeSession: t`End own sessions`,
});

/** The names of the subjects of permissions that are not content types. */
export const SUBJECTS = /** @type {Record<string, string>} */ ({
  upload: t`Media`,
  user: t`Users`,
  auth: t`Sign-in`,
  role: t`Roles`,
  token: t`API tokens`,
  settings: t`Settings`,
  branch: t`Branches`,
  history: t`History`,
  source: t`Source files`,
  problems: t`Problems`,
  redirects: t`Redirects`,
  locale: t`Locales`,
  "content-type": t`Schemas`,
  metrics: t`Metrics`,
  webhook: t`Webhooks`,
});

/**
 * @param {import("../model.js").Model} model
 * @param {string} subject
 */
export const subjectLabel = (model, subject) => {
  return model.types.find(({ name }) => name === subject)?.plural ?? SUBJECTS[subject] ?? labelOf(subject);
};

/** @param {string} action */
export const actionLabel = (action) => ACTION_LABELS[action] ?? labelOf(action);

/**
 * Return a permission such as "article.find" in words.
 * @param {import("../model.js").Model} model
 * @param {string} key
 */
export function permissionLabel(model, key) {
  const at = key.lastIndexOf(".");
  return `${subjectLabel(model, key.slice(0, at))}, ${actionLabel(key.slice(at + 1))}`;
}

/**
 * Send a write, and return its response. If the server refuses it, call `refused` with the error, and return null.
 * @param {string} path
 * @param {import("../api.js").Options} options
 * @param {(error: ApiError) => void} refused
 */
export async function send(path, options, refused) {
  try {
    return await ask(path, options);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    refused(error);
    return null;
  }
}

/** Return an error's message as a sentence. @param {ApiError} error */
export const sentence = (error) => (/[.!?]$/.test(error.message) ? error.message : `${error.message}.`);
