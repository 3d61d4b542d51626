import { draftMode } from "next/headers";
import { redirect } from "next/navigation";
import type { NextRequest } from "next/server";

/** /api/draft?secret=…&slug=… shows drafts in this browser; /api/draft alone ends that. */
export async function GET(request: NextRequest) {
  const { searchParams } = request.nextUrl;
  const secret = searchParams.get("secret");
  const draft = await draftMode();
  if (secret === null) {
    draft.disable();
    redirect("/");
  }
  if (!process.env.PREVIEW_SECRET || secret !== process.env.PREVIEW_SECRET) {
    return new Response("The secret is wrong", { status: 401 });
  }
  draft.enable();
  const slug = searchParams.get("slug");
  redirect(slug ? `/articles/${encodeURIComponent(slug)}` : "/");
}
