import type { H3Event } from "h3";

export interface Article {
  documentId: string;
  title: string;
  slug: string;
  summary: string | null;
  body: string | null;
  author: { name: string } | null;
  cover: { url: string; alternativeText: string | null; width: number; height: number } | null;
}

/** A list from Bifolio: of drafts, for whoever knows the secret of previews. */
export async function findInBifolio<T>(event: H3Event, plural: string, query: Record<string, string>): Promise<T[]> {
  const { bifolioUrl, bifolioToken, previewSecret } = useRuntimeConfig(event);
  const draft = previewSecret !== "" && getQuery(event).token === previewSecret;
  const { data } = await $fetch<{ data: T[] }>(`${bifolioUrl}/api/${plural}`, {
    query: { ...query, status: draft ? "draft" : "published" },
    headers: draft ? { Authorization: `Bearer ${bifolioToken}` } : {},
  });
  return data;
}
