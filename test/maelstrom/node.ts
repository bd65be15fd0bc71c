#!/usr/bin/env node
// A Maelstrom node: Tenure's Raft core and engine, on a real directory, with Maelstrom's network as the wire and standard
// input and output as the way there. `./maelstrom test -w lin-kv --bin …` runs it; so does our own router (router.ts).
//
//   started ─▶ init received: the cluster of the named nodes is founded, or found on the disk ─▶ serving
//
// TENURE_MAELSTROM_DATA names a directory that outlives the process. Without it each process has a temporary one, and
// a node that was killed must not come back: it would be a voter without its memory (trap 13).

import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { peerKey } from "../../src/core/kit/ids.ts";
import { seededRandom } from "../../src/core/kit/random.ts";
import { configurationOf } from "../../src/core/raft/index.ts";
import { openDataDirectory } from "../../src/drivers/disk/index.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { Engine } from "../../src/engine/engine.ts";
import { KvMachine } from "../kv/machine.ts";
import { LinKv } from "./lin-kv.ts";
import { NetworkWire } from "./network-wire.ts";
import { type Body, type Line, Lines } from "./protocol.ts";

/** All nodes are founders; a directory that is lost is not founded again. */
const INCARNATION = "a1";
const CLUSTER = "maelstrom";

interface Serving {
  readonly kv: LinKv;
  readonly wire: NetworkWire;
}

let self = "";
let serving: Serving | null = null;
let waiting: string[] = [];

const lines = new Lines();
process.stdin.setEncoding("utf8");
process.stdin.on("data", (text: string) => lines.read(text, (line) => void receive(line)));
process.stdin.once("end", () => process.exit(0));

/** What is said in one turn of the loop leaves in one write. */
function send(dest: string, body: Body): void {
  if (waiting.length === 0) {
    setImmediate(() => {
      process.stdout.write(waiting.join(""));
      waiting = [];
    });
  }
  waiting.push(`${JSON.stringify({ src: self, dest, body } satisfies Line)}\n`);
}

async function receive({ src, body }: Line): Promise<void> {
  switch (body.type) {
    case "init":
      self = String(body["node_id"]);
      serving = await open(self, body["node_ids"] as string[]);
      return reply(src, body, { type: "init_ok" });
    case "raft":
      return serving?.wire.receive(src, body);
    case "forward":
      return serving?.kv.forwarded(src, body);
    case "forward_ok":
      return serving?.kv.forwardAnswered(body);
    default:
      if (serving !== null) reply(src, body, await serving.kv.serve(body));
  }
}

function reply(dest: string, request: Body, answer: Body): void {
  send(dest, { ...answer, ...(request.msg_id === undefined ? {} : { in_reply_to: request.msg_id }) });
}

async function open(nodeId: string, nodeIds: readonly string[]): Promise<Serving> {
  const peers = nodeIds.map((id) => peerKey(id, INCARNATION));
  const directory = await openDataDirectory(dataPath(nodeId));
  const machine = new KvMachine();
  let wire: NetworkWire | undefined;
  const engine = await Engine.start({
    clusterId: CLUSTER,
    nodeId,
    disk: directory.disk,
    clock: systemClock,
    digest: systemDigest,
    random: seededRandom(`${nodeId} ${process.pid} ${Date.now()}`),
    connect: (peer) => (wire = new NetworkWire(peer, peers, send)),
    stateMachine: machine,
    newIncarnation: () => process.pid.toString(16),
    bootstrap: { incarnation: INCARNATION, configuration: configurationOf(peers.toSorted()) },
    onFatal: (error) => {
      process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
      process.exit(1);
    },
  });
  return { kv: new LinKv(engine, machine, send), wire: wire! };
}

function dataPath(nodeId: string): string {
  const root = process.env["TENURE_MAELSTROM_DATA"];
  if (root === undefined) return mkdtempSync(join(tmpdir(), "tenure-maelstrom-"));
  const path = join(root, nodeId);
  mkdirSync(path, { recursive: true });
  return path;
}
