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
      store.clear();
      for (const { documentId, ...attributes } of documents) {
        const data = await parseData({ id: documentId, data: attributes });
        const body = attributes.body ?? "";
        store.set({
          id: documentId,
          data,
          body,
          rendered: await renderMarkdown(body),
          digest: generateDigest(attributes),
        });
      }
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
