// A real server whose configuration is TOML: it starts, and a variable goes before the file.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { freePort, waitFor } from "../servers/index.ts";
import { atTheEnd, start } from "./test-tenure.ts";

const LIMIT_MS = 60_000;

it("starts from TOML, and listens where the environment says", async () => {
  const directory = mkdtempSync(join(tmpdir(), "tenure-toml-"));
  atTheEnd(async () => rmSync(directory, { recursive: true, force: true }));
  const [peerPort, filePort, apiPort] = [await freePort(), await freePort(), await freePort()];
  const file = join(directory, "node.toml");
  writeFileSync(
    file,
    `# one node
node_id = "t1"
data_dir = "data"      # beside this file
peer.listen = "127.0.0.1:${peerPort}"

[api]
listen = "127.0.0.1:${filePort}"

[election]
heartbeat_interval_ms = 40
`,
  );
  const args = ["server", "start", "--config", file, "--bootstrap"];
  const server = start(args, { TENURE_API_LISTEN: `127.0.0.1:${apiPort}` });
  const isUp = async (): Promise<boolean> => {
    const answer = await fetch(`http://127.0.0.1:${apiPort}/leader`).catch(() => null);
    return answer?.status === 200;
  };
  try {
    await waitFor("the node to lead", isUp, LIMIT_MS).catch((error: unknown) => {
      throw new Error(`the server said: ${server.said.stderr}${server.said.stdout}`, { cause: error });
    });
    await expect(fetch(`http://127.0.0.1:${filePort}/leader`)).rejects.toThrow("fetch failed");
  } finally {
    server.child.kill("SIGTERM");
  }
  expect((await server.ended).code).toBe(0);
});
