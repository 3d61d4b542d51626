import { marked } from "marked";
import { draftMode } from "next/headers";
import Image from "next/image";
import { notFound } from "next/navigation";
import { getArticle, listArticles } from "@/lib/bifolio";

export async function generateStaticParams() {
  const articles = await listArticles(false);
  return articles.map(({ slug }) => ({ slug }));
}

export default async function ArticlePage({ params }: { params: Promise<{ slug: string }> }) {
  const { isEnabled } = await draftMode();
  const article = await getArticle((await params).slug, isEnabled);
  if (!article) {
    notFound();
  }
  const { title, author, cover, body } = article;
  return (
    <main>
      <h1>{title}</h1>
      {author && <p>by {author.name}</p>}
      {cover && (
        <Image src={cover.url} alt={cover.alternativeText ?? ""} width={cover.width} height={cover.height} />
      )}
      {/* The text comes from the site's own repository; clean it where others may write. */}
      <div dangerouslySetInnerHTML={{ __html: await marked.parse(body ?? "") }} />
    </main>
  );
}
