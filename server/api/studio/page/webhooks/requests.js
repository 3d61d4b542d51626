/** Webhooks and their deliveries, as returned by the API, and the texts that several pages show about them. */

import { t } from "../language.js";
import { counted } from "../text.js";

/**
 * @typedef {object} Delivery
 * @property {string} id
 * @property {number} number
 * @property {"waiting" | "delivered" | "failed"} state
 * @property {string} createdAt
 * @property {number} attempts
 * @property {string | null} attemptedAt
 * @property {string | null} nextAttemptAt
 * @property {number | null} status
 * @property {string | null} error
 * @property {any} event
 * @property {{headers: Record<string, string>, body: string, size: number} | null} [request]
 * @property {{body: string, seconds: number} | null} [response]
 */

/**
 * @typedef {object} Webhook
 * @property {string} name
 * @property {string} url
 * @property {string[]} events
 * @property {string[]} types
 * @property {string[]} locales
 * @property {string[]} status
 * @property {number} debounce  In seconds.
 * @property {string[]} headers  The names.
 * @property {boolean} enabled
 * @property {string | null} disabledAt
 * @property {string | null} problem
 * @property {number | null} waiting
 * @property {Delivery | null} last
 * @property {"generated" | "settings"} secretIn
 * @property {string | null} previousSecretUntil
 */

/** The kinds of events among which a user can choose, with what they stand for. */
export const KINDS = [
  ["entry.*", t`All changes to documents`],
  ["entry.create", t`A document is created`],
  ["entry.update", t`A document is changed`],
  ["entry.publish", t`A document is published`],
  ["entry.unpublish", t`A document is unpublished`],
  ["entry.delete", t`A document is deleted`],
  ["media.*", t`Media are changed`],
  ["schema.update", t`Content types are changed`],
  ["site.update", t`Settings are changed`],
];

/** Return the API's path for a webhook. @param {string} name */
export const webhookPath = (name) => `webhooks/${encodeURIComponent(name)}`;

/** Return the state of a webhook: a text, and whether it needs attention. @param {Webhook} webhook */
export function stateOf({ enabled, disabledAt, problem, waiting, last }) {
  if (!enabled) return { text: t`Off`, isBad: false };
  if (disabledAt) return { text: t`Disabled by the receiver`, isBad: true };
  if (problem) return { text: t`Can't send requests`, isBad: true };
  if (last?.state === "failed") return { text: t`Last delivery failed`, isBad: true };
  if (last && last.state === "waiting" && last.attempts) return { text: t`Trying again`, isBad: true };
  if (waiting) return { text: t`${counted(waiting)} waiting`, isBad: false };
  return { text: last ? t`Delivered` : t`On`, isBad: false };
}

const STATES = { waiting: t`Waiting`, delivered: t`Delivered`, failed: t`Failed` };

/** Return the result of a delivery, such as "Failed: 500". @param {Delivery} delivery */
export function resultOf({ state, status, attempts }) {
  if (state === "waiting" && attempts) return status ? t`Trying again: ${status}` : t`Trying again`;
  return status ? `${STATES[state]}: ${status}` : STATES[state];
}
