// `tenure tc found|discard|recover` on the data directory of a real server that is stopped: what they write, what they refuse, with which exit code.

import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { diagnosticsOf } from "../../src/cli/server/diagnostics.ts";
import { parseServerConfig, type ServerConfig } from "../../src/contract/index.ts";
import {
  LEASES_NAME,
  LEDGER_NAME,
  openCoordinatorFiles,
  readLedger,
  writeLedger,
} from "../../src/controller/coordinators/index.ts";
import { ERRORS, TenureError } from "../../src/core/kit/errors.ts";
import { nodeIdOf, peerKey } from "../../src/core/kit/ids.ts";
import { generationOf, type Ledger } from "../../src/core/lease/index.ts";
import { electionConfig } from "../../src/core/raft/index.ts";
import { openDataDirectory } from "../../src/drivers/disk/index.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { openLogSink } from "../../src/drivers/telemetry/index.ts";
import { readStampOf } from "../../src/engine/stamp-reader.ts";
import { startServerNode } from "../../src/node/worlds/embedded.ts";
import { discardCoordinator, foundCoordinators, recoverCoordinators } from "../../src/node/worlds/tc-offline.ts";
import { identityOfEndpoint } from "../../src/node/worlds/tc-start.ts";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { freePort } from "../servers/index.ts";
import { tenure, tenureJson } from "./test-tenure.ts";

let directory: string;
let file: string;
let config: ServerConfig;
let endpoint: string;
let identity: string;

beforeAll(async () => {
  directory = await temporaryDirectory("tc-offline", undefined);
  const port = await freePort();
  endpoint = `http://127.0.0.1:${port}`;
  identity = identityOfEndpoint(endpoint);
  const raw = {
    node_id: "n1",
    data_dir: "data",
    peer: { listen: `127.0.0.1:${await freePort()}` },
    api: { listen: `127.0.0.1:${port}` },
  };
  file = join(directory, "n1.json");
  await writeFile(file, JSON.stringify(raw));
  config = configured(raw);
  const logs = openLogSink({ level: "silent", destination: "/dev/null" });
  const diagnostics = () => diagnosticsOf(config, logs);
  const onFatal = (error: unknown): void => {
    throw error;
  };
  const node = await startServerNode(config, { bootstrap: true, version: "0", logs, diagnostics, onFatal });
  await node.stop();
});
afterAll(() => removeDirectory(directory));

/** As after the first start as a coordinator: a voter that has promised nothing. */
beforeEach(async () => {
  await inDirectory(async (disk) => {
    for (const name of await disk.list("test")) if (name.startsWith("tc-")) await disk.remove(name, "test");
  });
  await opened();
});

function configured(raw: object): ServerConfig {
  return parseServerConfig(raw, { environment: {}, configDir: directory, checkElection: electionConfig });
}

type Disk = Awaited<ReturnType<typeof openDataDirectory>>["disk"];

async function inDirectory<T>(work: (disk: Disk) => Promise<T>): Promise<T> {
  const opened = await openDataDirectory(config.dataDir);
  try {
    return await work(opened.disk);
  } finally {
    await opened.close();
  }
}

let incarnations = 0x1000;

/** As the node's next start would: which voter it is, with what. `changed`: what it does then. */
async function opened(changed?: (ledger: Ledger) => Ledger) {
  return await inDirectory(async (disk) => {
    const stamp = await readStampOf(disk, systemDigest);
    const files = await openCoordinatorFiles({
      disk,
      digest: systemDigest,
      node: identity,
      log: stamp!.incarnation,
      newIncarnation: () => (++incarnations).toString(16),
    });
    if (changed !== undefined) await files.ledgerFile.write(changed(files.ledger));
    await files.membershipFile.write([{ identity: "b", endpoint: "https://b", updatedAtMs: 1, expiresAtMs: 2 }]);
    return files;
  });
}

/** A member of a cluster of three that has granted a term to another one. */
function memberOf(self: Awaited<ReturnType<typeof opened>>["self"]): (ledger: Ledger) => Ledger {
  const b = peerKey("b", "b1");
  const voters = [
    { peer: self, endpoint },
    { peer: b, endpoint: "https://b" },
    { peer: peerKey("c", "c1"), endpoint: "https://c" },
  ];
  const registry = [{ backendHash: "a".repeat(64), endpoint: "https://b" }];
  return () => ({
    clusterId: "tc-1",
    term: 12,
    grant: { term: 12, leader: b, released: false },
    roster: { term: 12, version: 3, recoveredBy: null, voters, registry },
    shown: { term: 12, version: 3, registry },
  });
}

async function refused(run: Promise<unknown>): Promise<{ exit: number; message: string }> {
  const error = await run.then(
    () => new Error("was done"),
    (failure: unknown) => failure,
  );
  if (!TenureError.is(error)) throw error;
  return { exit: ERRORS[error.code].exit, message: error.message };
}

const names = async (): Promise<string[]> => (await readdir(config.dataDir)).filter((name) => name.startsWith("tc-"));

describe("found", () => {
  it("makes this node the only voter of a new cluster, under the name that it has", async () => {
    const { self } = await opened();
    const { code, ...said } = await tenureJson("tc", "found", "--force", "--config", file);
    const { ledger, ...after } = await opened();
    expect(after.self).toBe(self);
    expect(nodeIdOf(self)).toBe(identity);
    expect(ledger).toMatchObject({ term: 0, grant: null, shown: null, roster: { voters: [{ peer: self, endpoint }] } });
    expect({ code, ...said }).toEqual({ code: 0, tc_cluster_id: ledger.clusterId, voter: self, endpoint });
    expect(ledger.clusterId).toMatch(/^[A-Za-z0-9._:@-]{8,}$/);
  });

  it("also before the first start as a coordinator, and where the ledger is damaged", async () => {
    await inDirectory((disk) => disk.remove(LEDGER_NAME, "test"));
    await foundCoordinators(config);
    const { self, ledger } = await opened();
    expect(ledger.roster?.voters).toEqual([{ peer: self, endpoint }]);
    await writeFile(join(config.dataDir, LEDGER_NAME), "rotten");
    await foundCoordinators(config);
    const again = await opened();
    expect(again.ledger.roster?.voters).toEqual([{ peer: again.self, endpoint }]);
    // What the damaged one had promised, nobody knows.
    expect(again.self).not.toBe(self);
  });

  it("not where this node is in a cluster: exit 78, and nothing is changed", async () => {
    const { self } = await opened();
    await opened(memberOf(self));
    const before = await readFile(join(config.dataDir, LEDGER_NAME), "utf8");
    const { exit, message } = await refused(foundCoordinators(config));
    expect([exit, message]).toEqual([
      78,
      expect.stringMatching(/is in the cluster of coordinators tc-1 already.*tenure tc discard/),
    ]);
    expect(await readFile(join(config.dataDir, LEDGER_NAME), "utf8")).toBe(before);
  });
});

describe("recover", () => {
  it("makes this node the only voter, a generation later; its promise and the registry stay", async () => {
    const { self } = await opened();
    const { ledger: before } = await opened(memberOf(self)).then(() => opened());
    const said = await tenureJson<{ term: number }>("tc", "recover", "--force", "--config", file);
    const { self: after, ledger } = await opened();
    expect(said).toEqual({
      code: 0,
      tc_cluster_id: "tc-1",
      term: ledger.term,
      voter: self,
      voters_before: [self, "b@b1", "c@c1"],
    });
    expect([after, generationOf(ledger.term)]).toEqual([self, generationOf(before.term) + 1]);
    expect(ledger).toMatchObject({ clusterId: "tc-1", grant: before.grant, shown: before.shown });
    expect(ledger.roster).toMatchObject({
      term: ledger.term,
      recoveredBy: self,
      voters: [{ peer: self, endpoint }],
      registry: before.roster!.registry,
    });
  });

  it("says to people who voted before, what is lost, and what two sides of a cut become", async () => {
    const { self } = await opened();
    await opened(memberOf(self));
    const { code, stdout } = await tenure("tc", "recover", "--force", "--config", file);
    expect(code).toBe(0);
    for (const text of ["b@b1 (https://b), c@c1 (https://c)", "is lost", "two clusters"])
      expect(stdout).toContain(text);
  });

  it("not where there is nothing to recover, or what was promised is not known", async () => {
    const nothing = await refused(recoverCoordinators(config));
    expect([nothing.exit, nothing.message]).toEqual([
      78,
      expect.stringMatching(/was never in a cluster.*tenure tc found/),
    ]);
    await writeFile(join(config.dataDir, LEDGER_NAME), "rotten");
    const damaged = await refused(recoverCoordinators(config));
    expect([damaged.exit, damaged.message]).toEqual([74, expect.stringMatching(/damaged.*Recover another node/)]);
    await discardCoordinator(config);
    const none = await refused(recoverCoordinators(config));
    expect([none.exit, none.message]).toEqual([78, expect.stringMatching(/no coordinator has kept anything here/)]);
  });

  it("not under another name, nor with the ledger of another disk: the next start would set it aside", async () => {
    const { self } = await opened();
    await opened(memberOf(self));
    const moved = configured({ node_id: "n1", data_dir: "data", api: { advertise: "http://127.0.0.1:1" } });
    const named = await refused(recoverCoordinators(moved));
    expect([named.exit, named.message]).toEqual([78, expect.stringContaining(`is of the node ${identity}`)]);
    await inDirectory(async (disk) => {
      const found = await readLedger({ disk, digest: systemDigest });
      if (found?.kind !== "whole") throw new Error("no ledger was written");
      await writeLedger({ disk, digest: systemDigest }, { ...found.value, log: "0ddd" });
    });
    const other = await refused(recoverCoordinators(config));
    expect([other.exit, other.message]).toEqual([78, expect.stringMatching(/of another disk \(0ddd\)/)]);
  });
});

describe("discard", () => {
  it("keeps the file as evidence; the next start is another voter, which knows nobody of the old cluster", async () => {
    const { self } = await opened();
    await opened(memberOf(self));
    expect(await names()).toContain(LEASES_NAME);
    const said = await tenureJson("tc", "discard", "--force", "--config", file);
    expect(said).toEqual({ code: 0, tc_cluster_id: "tc-1", voter: self, voters_before: [self, "b@b1", "c@c1"] });
    expect(await names()).toEqual([expect.stringMatching(/^tc-ledger-aside-\d+$/)]);
    const after = await opened();
    expect(after.self).not.toBe(self);
    expect(after.ledger).toMatchObject({ clusterId: null, roster: null });
  });

  it("of a damaged ledger too, and of none: exit 78", async () => {
    await writeFile(join(config.dataDir, LEDGER_NAME), "rotten");
    const { text } = await discardCoordinator(config);
    expect(text).toContain("A damaged ledger");
    const { exit, message } = await refused(discardCoordinator(config));
    expect([exit, message]).toEqual([78, expect.stringContaining("no coordinator has kept anything here")]);
  });
});

describe.each([
  ["found", foundCoordinators],
  ["recover", recoverCoordinators],
  ["discard", discardCoordinator],
])("%s", (_verb, run) => {
  it("not while the node runs", async () => {
    const { exit, message } = await inDirectory(() => refused(run(config)));
    expect([exit, message]).toEqual([78, expect.stringMatching(/in use|another process|runs/)]);
  });

  it("not where no node ever was: and no directory is made", async () => {
    const dataDir = join(directory, "nowhere");
    const { exit, message } = await refused(run({ ...config, dataDir }));
    expect([exit, message]).toEqual([78, `Nothing was done to this data directory: there is no ${dataDir}.`]);
    expect(await readdir(directory)).not.toContain("nowhere");
  });
});
