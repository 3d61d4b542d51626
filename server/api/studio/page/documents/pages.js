/** The pages of documents. Most users open both of them soon, so both are loaded together. */

export { DocumentPage } from "./document-page.js";
export { ListPage } from "./list-page.js";
