// A server that is started wrongly ends at once, with the registry's exit code and a message that says what to do; what was
// there stays as it was. Strangers at a running server's peer port are refused, counted, and change nothing.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { peerSecret } from "../../src/node/worlds/secret.ts";
import type { ServerConfigFile } from "../../src/contract/index.ts";
import { FRAME, FRAME_HEADER_BYTES, writeHeader } from "../../src/drivers/wire/frame.ts";
import { Secret } from "../../src/drivers/wire/handshake/secret.ts";
import {
  CLIENT_KEY,
  freePort,
  startTenureCluster,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";
import { tenure } from "../cli/test-tenure.ts";
import { Stranger } from "../wire/test-stranger.ts";
import { Ledger } from "./test-ledger.ts";

let cluster: TenureCluster;
let node: TenureNode;

beforeAll(async () => {
  cluster = await startTenureCluster({ nodes: 1 });
  node = cluster.node("n1");
}, 120_000);

afterAll(() => cluster?.end());

/** The bytes of every file, so that "nothing changed" means just that; but for those that say who holds the directory. */
function contents(directory: string): Record<string, string> {
  const names = readdirSync(directory).filter((name) => name !== "lock" && name !== "holder");
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(directory, name)).toString("base64")]));
}

/** A stamp as a later release would write it: another version, and a checksum that is right. */
function writeLaterVersion(file: string): void {
  const [checksumAt, bodyAt, versionAt] = [4, 8, 9];
  const bytes = readFileSync(file);
  bytes[versionAt] = 2;
  bytes.writeUInt32BE(crc32(bytes.subarray(bodyAt)), checksumAt);
  writeFileSync(file, bytes);
}

let made = 0;

/** A node of its own, which shares nothing with the running one but what `change` says. */
async function other(change: Partial<ServerConfigFile> = {}): Promise<TenureNode> {
  const name = `x${++made}`;
  const one = await cluster.make(name);
  one.configure(change);
  onTestFinished(() => cluster.forget(name));
  return one;
}

/** How it ends, started so; it must end by itself. */
async function ended(one: TenureNode, ...flags: readonly string[]): Promise<{ code: number | null; log: string }> {
  one.start(flags);
  return one.ended();
}

describe("a server does not start", () => {
  test("with an unknown field: exit 78, and it is named with what was meant", async () => {
    const one = await other({ pears: {} } as Partial<ServerConfigFile>);
    const { code, log } = await ended(one, "--bootstrap");
    expect(code).toBe(78);
    expect(log).toContain("pears");
    expect(log).toMatch(/peers/);
  });

  test("beyond loopback without TLS and keys: exit 78, and it says how to fix it", async () => {
    const listen = `0.0.0.0:${await freePort()}`;
    const one = await other({ peer: { listen, advertise: `localhost:${await freePort()}` } });
    const { code, log } = await ended(one, "--bootstrap");
    expect(code).toBe(78);
    expect(log).toMatch(/peer\.tls.*tenure cert init/);
  });

  test("without a cluster to join, when it is not told to found one: exit 78", async () => {
    const { code, log } = await ended(await other());
    expect(code).toBe(78);
    expect(log).toContain("--bootstrap");
  });

  test("while none of its peers is there: it waits, and SIGTERM ends that with 0", async () => {
    const one = await other({ peers: { n8: `127.0.0.1:${await freePort()}` } });
    one.start();
    await waitFor("it to have its directory", () => existsSync(join(one.dataDir, "holder")));
    expect(await one.term()).toBe(0);
    expect(existsSync(join(one.dataDir, "stamp"))).toBe(false);
  });

  test("in a data directory that a living server uses: exit 78, and the other goes on", async () => {
    const { pid } = node;
    const { code, log } = await ended(await other({ node_id: "n1", data_dir: node.dataDir }));
    expect(code).toBe(78);
    expect(log).toContain("DATA_DIRECTORY_IN_USE");
    expect(node.pid).toBe(pid);
    await new Ledger(cluster).write();
  });

  test.runIf(process.platform === "linux")(
    "in a data directory that can't hold files, or is a file: exit 78 at once, and it says so; config check says it too",
    async () => {
      const { configFile } = node;
      const check = async (directory: string) =>
        tenure("config", "check", (await other({ data_dir: directory })).configFile);
      const start = async (directory: string) => ended(await other({ data_dir: directory }), "--bootstrap");
      expect(await start("/proc/tenure")).toMatchObject({
        code: 78,
        log: expect.stringMatching(/\/proc\/tenure can't be used as a data directory: nothing can be made/),
      });
      expect(await start(configFile)).toMatchObject({
        code: 78,
        log: expect.stringContaining(`${configFile} is not a directory. Give the data directory another path`),
      });
      for (const [directory, text] of [
        ["/proc/tenure", "data_dir: /proc can't hold files"],
        [join(configFile, "below"), `data_dir: ${configFile} is not a directory`],
      ] as const) {
        expect(await check(directory)).toMatchObject({ code: 78, stderr: expect.stringContaining(text) });
      }
    },
  );

  test("on a port that is taken, of peers or of clients: exit 78, with the address and what to do", async () => {
    for (const change of [{ peer: { listen: node.peerAddress } }, { api: { listen: new URL(node.url).host } }]) {
      const { code, log } = await ended(await other(change), "--bootstrap");
      expect({ code, log }).toMatchObject({
        code: 78,
        log: expect.stringMatching(/127\.0\.0\.1:\d+: another process/),
      });
    }
  });

  describe("in a data directory", () => {
    /** A stopped server's directory, as a copy that may be spoiled. */
    async function stopped(): Promise<string> {
      const founder = await other();
      founder.start(["--bootstrap"]);
      await waitFor("it to lead", async () => (await founder.view())?.role === "LEADER");
      expect(await founder.term()).toBe(0);
      const directory = join(cluster.directory, `copy-${made}`);
      mkdirSync(directory);
      cpSync(founder.dataDir, directory, { recursive: true });
      return directory;
    }

    test("of another node, or of a later format: exit 78, and no byte of it has changed", async () => {
      const directory = await stopped();
      const before = contents(directory);
      const another = await ended(await other({ data_dir: directory }), "--bootstrap");
      expect(another).toMatchObject({ code: 78, log: expect.stringContaining("STAMP_MISMATCH") });
      expect(contents(directory)).toEqual(before);

      const later = join(cluster.directory, `later-${made}`);
      cpSync(directory, later, { recursive: true });
      writeLaterVersion(join(later, "stamp"));
      const spoilt = contents(later);
      const newer = await ended(await other({ data_dir: later }), "--bootstrap");
      expect(newer).toMatchObject({ code: 78, log: expect.stringContaining("FORMAT_UNSUPPORTED") });
      expect(contents(later)).toEqual(spoilt);
    });
  });
});

describe("a stranger at the peer port", () => {
  const port = (): number => Number(node.peerAddress.split(":")[1]);

  /** Told why, counted once, and the server leads and writes as before. */
  async function expectCounted(reason: string, before: number): Promise<void> {
    await waitFor(`${reason} to be counted`, async () => (await refusals(reason)) === before + 1);
    await new Ledger(cluster).write();
    expect((await node.view())?.members.map(({ node_id }) => node_id)).toEqual(["n1"]);
  }

  async function refusals(reason: string): Promise<number> {
    const { body } = await node.call<{ text: string }>("/metrics", { key: CLIENT_KEY });
    const line = new RegExp(`^tenure_peer_connections_refused_total\\{reason="${reason}"\\} (\\d+)$`, "m");
    return Number(line.exec(body.text)?.[1] ?? Number.NaN);
  }

  /** Of this user: it knows the secret of this machine's nodes. */
  function dial(): Promise<Stranger> {
    const logger = { info: () => undefined, warn: () => undefined, error: () => undefined };
    return Stranger.dial(port(), new Secret(peerSecret({ file: null, isAlone: false, logger })).dialOptions());
  }

  test("of another cluster hears both clusters' names", async () => {
    const before = await refusals("other-cluster");
    const stranger = await dial();
    stranger.hello({ clusterId: "c-another" });
    expect(await stranger.refused()).toMatchObject({ reason: "other-cluster" });
    await expectCounted("other-cluster", before);
    await waitFor("it to be logged", () => node.log().includes("c-another"));
  });

  test("who speaks no such protocol is refused, as garbage where it knows the secret", async () => {
    for (const [reason, stranger] of [
      ["secret", await Stranger.dial(port())],
      ["garbage", await dial()],
    ] as const) {
      const before = await refusals(reason);
      stranger.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await waitFor("the end", () => stranger.isClosed);
      await expectCounted(reason, before);
    }
  });

  test("who announces a frame beyond the limit is refused before a byte of it is kept", async () => {
    const before = await refusals("oversized-frame");
    const stranger = await dial();
    const header = new Uint8Array(FRAME_HEADER_BYTES);
    writeHeader(header, 0, FRAME.hello, 512 * 1024 * 1024);
    stranger.write(header);
    await waitFor("the end", () => stranger.isClosed);
    await expectCounted("oversized-frame", before);
  });
});
