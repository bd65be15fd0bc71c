// http:// at a port that speaks TLS, and https:// at one that does not: every client says which of the two is right, at once,
// and a server that is asked so serves everybody else as before.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createAgent } from "../../src/entry/agent.ts";
import { createClient } from "../../src/entry/client.ts";
import { createElector } from "../../src/entry/index.ts";
import { servers } from "../../src/entry/servers.ts";
import { start as startTenure } from "../cli/test-tenure.ts";
import { CLIENT_KEY, OPERATOR_KEY, startTenureCluster, type TenureCluster } from "../servers/index.ts";

let secure: TenureCluster;
let plain: TenureCluster;
let files: string;
beforeAll(async () => {
  files = mkdtempSync(join(tmpdir(), "tenure-schemes-"));
  writeFileSync(join(files, "key"), OPERATOR_KEY, { mode: 0o600 });
  [secure, plain] = await Promise.all([
    startTenureCluster({ nodes: 1, tls: true }),
    startTenureCluster({ nodes: 1, tls: false }),
  ]);
});
afterAll(async () => {
  await Promise.all([secure.end(), plain.end()]);
  rmSync(files, { recursive: true, force: true });
});

interface Wrong {
  readonly url: () => string;
  readonly says: RegExp;
}

const WRONG: Readonly<Record<string, Wrong>> = {
  "http:// at a TLS port": {
    url: () => secure.urls[0]!.replace("https:", "http:"),
    says: /speaks TLS.* Use https:\/\//,
  },
  "https:// at a plain port": {
    url: () => plain.urls[0]!.replace("http:", "https:"),
    says: /answers without TLS\. Use http:\/\//,
  },
};

describe.each(Object.entries(WRONG))("%s", (_what, { url, says }) => {
  test("the client for jobs says so, of a read and of a call that changes something", async () => {
    const client = createClient({ urls: url(), key: CLIENT_KEY });
    await expect(client.cluster()).rejects.toMatchObject({ message: expect.stringMatching(says), retryable: false });
    const job = { kind: "a", payload: { text: "x".repeat(100_000) } };
    await expect(client.submit(job)).rejects.toMatchObject({ message: expect.stringMatching(says), retryable: false });
  });

  test("an agent says so", async () => {
    const client = createClient({ urls: url(), key: CLIENT_KEY });
    const agent = createAgent({ client, name: "a", handlers: { a: () => null } });
    await expect(agent.start()).rejects.toMatchObject({ message: expect.stringMatching(says) });
    await agent.stop();
  });

  test("an elector says so, and does not wait for ever", async () => {
    await using elector = createElector({ scope: "s", backend: servers([url()], { key: CLIENT_KEY }) });
    await expect(elector.acquire()).rejects.toMatchObject({ message: expect.stringMatching(says), retryable: false });
  });

  test.each([
    ["cluster", "status"],
    ["job", "list"],
    ["job", "submit", "--detach", "--", "true"],
    ["scope", "list"],
    ["run", "--scope", "s", "--", "true"],
    ["doctor"],
    ["agent", "start", "--name", "a"],
  ])("tenure %s %s says so, and ends", async (...args) => {
    const told = { TENURE_URL: url(), TENURE_BACKEND: url(), TENURE_API_KEY_FILE: join(files, "key") };
    const { code, stdout, stderr } = await startTenure(args, told).ended;
    expect(`${stdout}${stderr}`).toMatch(says);
    expect(code).toBe(args[0] === "doctor" ? 1 : 78);
  });
});

test("meanwhile the node with TLS answers everybody else", async () => {
  for (let at = 0; at < 100; at++)
    await fetch(secure.urls[0]!.replace("https:", "http:"), { method: "POST", body: "x" });
  expect(await secure.node("n1").call("/livez")).toMatchObject({ status: 200 });
  expect((await secure.node("n1").view())?.role).toBe("LEADER");
});
