import { url } from "$lib/server/bifolio";

/** Visitors request images from this server, so Bifolio does not have to be public. */
export async function GET({ params, fetch }) {
  const { status, headers, body } = await fetch(`${url}/uploads/${encodeURI(params.path)}`);
  return new Response(body, { status, headers: { "Content-Type": headers.get("Content-Type") ?? "" } });
}
