// Calls tools with the official TypeScript SDK. Input: {url, calls: [[tool, arguments], …]} as JSON on stdin.
// Output: the text of each result, and whether it is an error; or the SDK's own error in `thrown`.
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const input = JSON.parse(readFileSync(0, "utf8"));
const client = new Client({ name: "test", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(input.url)));
await client.listTools(); // From now on, the SDK checks structured content against the output schemas.
const results = [];
for (const [name, parameters] of input.calls) {
  try {
    const result = await client.callTool({ name, arguments: parameters });
    results.push({ text: result.content[0].text, isError: Boolean(result.isError) });
  } catch (error) {
    results.push({ thrown: error.message });
  }
}
await client.close();
console.log(JSON.stringify(results));
