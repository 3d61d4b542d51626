/** What the user may do with the documents of a content type in a form. Forbidden actions are not shown. */

/**
 * @typedef {object} Rights
 * @property {boolean} write  Whether edits can be saved.
 * @property {boolean} publish  Whether a draft can be published.
 * @property {boolean} create
 * @property {boolean} remove
 */

/**
 * @param {import("../model.js").Model} model
 * @param {import("../model.js").Type} type
 * @param {boolean} isNew
 * @returns {Rights}
 */
export function rightsOf(model, type, isNew) {
  const drafts = model.seesDrafts(type);
  const writesDrafts = drafts && model.may(type, "updateDraft");
  const whole = model.may(type, isNew && !type.single ? "create" : "update");
  return {
    write: whole || writesDrafts,
    publish: drafts && whole,
    create: !type.single && (model.may(type, "create") || writesDrafts),
    remove: model.may(type, "delete"),
  };
}
