// The etcd backend keeps every promise of an elector, against a real etcd where one is installed.

import { afterAll, beforeAll, describe, it } from "vitest";
import { guardOf } from "../../src/electors/etcd/term.ts";
import { scopeKeys, toBase64 } from "../../src/electors/etcd/keys.ts";
import { etcd } from "../../src/entry/etcd.ts";
import { StaleEpochError } from "../../src/entry/index.ts";
import { type ConformanceWorld, electorConformance } from "../../src/entry/testing.ts";
import { etcdPath, type EtcdServer, startEtcd } from "../servers/index.ts";
import { proxiedWorld } from "./test-worlds.ts";

const TTL_SECONDS = 3;
const PREFIX = "conformance/";

let server: EtcdServer;

/** A transaction of the user's own over the JSON gateway, with the guard in it. */
async function guardedWrite(scope: string, epoch: number, value: string): Promise<void> {
  const { leader } = scopeKeys(PREFIX, scope);
  const put = { request_put: { key: toBase64(`ledger/${scope}`), value: toBase64(value) } };
  const response = await fetch(`${server.endpoint}/v3/kv/txn`, {
    method: "POST",
    body: JSON.stringify({ compare: [guardOf(leader, epoch)], success: [put] }),
  });
  if (!response.ok) throw new Error(`etcd answered ${response.status}: ${await response.text()}`);
  const { succeeded } = (await response.json()) as { succeeded?: boolean };
  if (succeeded !== true) throw new StaleEpochError(scope, epoch);
}

function world(): ConformanceWorld {
  return proxiedWorld({
    serverPort: server.port,
    // A lease outlives the process that has it.
    killFreesAtOnce: false,
    backend: (port) => etcd({ endpoints: `http://127.0.0.1:${port}`, ttlSeconds: TTL_SECONDS, prefix: PREFIX }),
    write: guardedWrite,
  });
}

describe.skipIf(etcdPath() === undefined)("etcd (skipped where it is not installed)", { concurrent: true }, () => {
  beforeAll(async () => {
    server = await startEtcd();
  });

  afterAll(async () => {
    await server?.end();
  });

  for (const { name, run } of electorConformance(world)) it(name, run);
});
