import { url } from "$lib/server/bifolio";

/** Visitors ask this server for pictures, so that Bifolio need not be reachable for them. */
export async function GET({ params, fetch }) {
  const { status, headers, body } = await fetch(`${url}/uploads/${encodeURI(params.path)}`);
  return new Response(body, { status, headers: { "Content-Type": headers.get("Content-Type") ?? "" } });
}
