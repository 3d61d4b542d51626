import { defineCollection, z } from "astro:content";
import { bifolio } from "./bifolio";

const articles = defineCollection({
  loader: bifolio("articles", { "populate[author][fields]": "name", "populate[cover]": "true" }),
  schema: z.object({
    title: z.string(),
    slug: z.string(),
    summary: z.string().nullable(),
    publishedOn: z.coerce.date().nullable(),
    author: z.object({ name: z.string() }).nullable(),
    cover: z
      .object({
        url: z.string(),
        alternativeText: z.string().nullable(),
        width: z.number(),
        height: z.number(),
      })
      .nullable(),
  }),
});

export const collections = { articles };
