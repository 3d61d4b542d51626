import type { Loader } from "astro/loaders";

export const url = process.env.BIFOLIO_URL ?? "http://127.0.0.1:1337";
// Drafts are for those who have a token.
const status = process.env.BIFOLIO_STATUS ?? "published";
const headers: HeadersInit = process.env.BIFOLIO_TOKEN ? { Authorization: `Bearer ${process.env.BIFOLIO_TOKEN}` } : {};

/** Loads every document of a content type, by its plural name: `bifolio("articles", { sort: "title" })`. */
export function bifolio(plural: string, parameters: Record<string, string> = {}): Loader {
  return {
    name: "bifolio",
    async load({ store, parseData, generateDigest, renderMarkdown, logger }) {
      const documents = await findAll(plural, parameters);
      const entries = [];
      for (const { documentId, ...attributes } of documents) {
        const data = await parseData({ id: documentId, data: attributes });
        const body = attributes.body ?? "";
        const rendered = await renderMarkdown(body);
        entries.push({ id: documentId, data, body, rendered, digest: generateDigest(attributes) });
      }
      // Replace the entries without waiting in between: Astro saves the store in the background, and can lose
      // entries that are set while it saves.
      store.clear();
      entries.forEach((entry) => store.set(entry));
      logger.info(`${documents.length} ${plural} from ${url}`);
    },
  };
}

async function findAll(plural: string, parameters: Record<string, string>): Promise<Record<string, any>[]> {
  const documents = [];
  for (let page = 1, pages = 1; page <= pages; page++) {
    const paging = { "pagination[page]": `${page}`, "pagination[pageSize]": "100" };
    const query = new URLSearchParams({ ...parameters, ...paging, status });
    const answer = await fetch(`${url}/api/${plural}?${query}`, { headers });
    if (!answer.ok) {
      throw new Error(`Bifolio answers ${answer.status} to /api/${plural}?${query}: ${await answer.text()}`);
    }
    const { data, meta } = await answer.json();
    documents.push(...data);
    pages = meta.pagination.pageCount;
  }
  return documents;
}
