import { revalidatePath } from "next/cache";
import type { NextRequest } from "next/server";

/** POST /api/revalidate?secret=… makes the next visitor of each page see what Bifolio has now. */
export async function POST(request: NextRequest) {
  const secret = request.nextUrl.searchParams.get("secret");
  if (!process.env.PREVIEW_SECRET || secret !== process.env.PREVIEW_SECRET) {
    return new Response("The secret is wrong", { status: 401 });
  }
  revalidatePath("/", "layout");
  return new Response(null, { status: 204 });
}
