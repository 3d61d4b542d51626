/** Reads texts with marks as JSON; writes what `@vercel/stega` finds in each, and what is left of it. */

import { vercelStegaDecode, vercelStegaSplit } from "@vercel/stega";
import { text } from "node:stream/consumers";

const texts = JSON.parse(await text(process.stdin));
const read = (marked) => ({ text: vercelStegaSplit(marked).cleaned, source: vercelStegaDecode(marked)?.strapiSource });
console.log(JSON.stringify(texts.map(read)));
