/** The page of a content type, with a list of its documents. */

import { useStudio } from "../context.js";
import { List } from "../list/list.js";
import { NoContent } from "../states.js";
import { html } from "../vendor/preact.js";
import { documentsOf } from "./resource.js";

/** @param {{type: string, params: URLSearchParams}} props */
export function ListPage({ type: name, params }) {
  const { model, reload } = useStudio();
  const type = model.typeNamed(name);
  if (!type) return html`<${NoContent} name=${name} />`;
  return html`<${List} resource=${documentsOf(model, type)} renew=${reload} params=${params} />`;
}
