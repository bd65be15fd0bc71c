// Values in a cluster that is upgraded node by node: none is written before every member reads such records, and then all have them.

import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { CALM_ELECTION, CLIENT_KEY, startTenureCluster, waitFor } from "../servers/index.ts";
import { writePlant } from "../servers/planted.ts";

const LIMIT_MS = 180_000;

test("the first value waits for the last node that is upgraded; scopes do not", { timeout: LIMIT_MS }, async () => {
  const cluster = await startTenureCluster({
    election: CALM_ELECTION,
    prepare: (node) => {
      if (node.id !== "n3") return;
      // A release that speaks no protocol 6 stops at such a record.
      const edit = { file: "drivers/wire/handshake/hello.ts", find: "PROTOCOL_MAX = 7", replace: "PROTOCOL_MAX = 5" };
      node.nodeFlags = writePlant(join(node.home, "plant.mjs"), [edit]);
    },
  });
  onTestFinished(() => cluster.end());
  const { scopes, values } = createClient({ urls: cluster.urls, key: CLIENT_KEY, timeoutMs: 30_000 });
  const asked = { scope: "s", session: "a", identity: "i", ttlMs: 60_000, waitMs: 10_000 };
  expect(await scopes.acquire(asked)).toMatchObject({ granted: true });
  const early = values.put("cursor", 1);
  await expect(early).rejects.toMatchObject({ code: "NOT_SUPPORTED", message: expect.stringContaining("n3") });
  expect(await values.get("cursor")).toBeNull();

  const last = cluster.nodes.at(-1)!;
  last.nodeFlags = [];
  await last.restart();
  await cluster.steady();
  await waitFor("the first value", () =>
    values.put("cursor", 1).then(
      () => true,
      () => false,
    ),
  );
  const { values: atLast } = createClient({ urls: [last.url], key: CLIENT_KEY });
  expect(await atLast.get("cursor")).toMatchObject({ value: 1 });
  // Whoever has one has read one: nobody has to be there for the next.
  await last.kill9();
  await values.put("cursor", 2);
  last.start();
  await waitFor("the node that was away", () =>
    atLast.get("cursor").then(
      (found) => found?.value === 2,
      () => false,
    ),
  );
});
