// The TypeScript SDK.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, ...target] = process.argv.slice(2);
const connect = async () => {
  const client = new Client({ name: "peer", version: "1" });
  await client.connect(
    kind === "stdio"
      ? new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env })
      : new StreamableHTTPClientTransport(new URL(target[0])),
  );
  return client;
};

let client = await connect();
const tools = (await client.listTools()).tools.map((tool) => tool.name).sort();
const answer = await client.callTool({ name: "echo", arguments: { text: "ab", times: 2 } });
await client.close();

client = await connect();
let left = "nothing";
try {
  await client.callTool({ name: "slow", arguments: { seconds: 1.2 } }, undefined, { timeout: 500 });
} catch (error) {
  left = error.constructor.name;
}
await client.close();
console.log("PEER " + JSON.stringify({ tools, called: answer.content[0].text, left }));
