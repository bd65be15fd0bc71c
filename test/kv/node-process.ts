// The node of the test store: the same data directory, wire and engine as `tenure server start` (node/worlds/consensus.ts),
// folding a key-value machine, served over TCP, and steered over IPC by whoever started it.
//
//   starting ─▶ ready ─▶ ended: by a signal, by its harness going away, or by itself when the engine fails

import { appendFileSync, openSync, writeSync } from "node:fs";
import { openConsensus, type ConsensusNode } from "../../src/node/worlds/consensus.ts";
import { assertNever } from "../../src/core/kit/assert.ts";
import type { PeerKey } from "../../src/core/kit/ids.ts";
import type { RaftEvent } from "../../src/core/raft/index.ts";
import type { Logger } from "../../src/ports/logger.ts";
import { DiskFaults } from "../disk/test-faulty-disk.ts";
import { lyingDisk } from "./lying-disk.ts";
import { KvMachine } from "./machine.ts";
import {
  type DiskFault,
  type EventLine,
  EXIT_BROKEN_INVARIANT,
  EXIT_FATAL,
  type FromHarness,
  type FromNode,
  type NodeOptions,
  type NodeStatus,
  type Question,
  type Reply,
} from "./messages.ts";
import { KvService } from "./service.ts";

const HOST = "127.0.0.1";

export async function runNode(options: NodeOptions): Promise<void> {
  // Whoever started us is gone: nobody would ever end this process.
  process.once("disconnect", () => process.exit(0));
  const machine = new KvMachine();
  const faults = new DiskFaults();
  const { lieMs } = options;
  const node = await openConsensus({
    nodeId: options.nodeId,
    dataDir: options.dataDir,
    listen: { host: HOST, port: options.peerPort },
    advertise: null,
    apiUrl: null,
    seeds: options.seeds,
    tls: null,
    election: options.election,
    snapshots: options.snapshots,
    bootstrap: options.bootstrap,
    machine,
    logger: loggerOf(options.nodeId),
    onFatal: fatal,
    io: faults.io,
    wrapDisk: lieMs === undefined ? undefined : (disk) => lyingDisk(disk, lieMs),
  });
  const service = new KvService(node.engine, machine);
  const log = eventLog(options.eventLog, node.engine.peer);
  const heard = (event: RaftEvent): void => {
    log(event);
    service.event(event);
  };
  node.engine.subscribe(heard);
  const { role, term, leader } = node.engine.status();
  heard({ kind: "role", role, term, leader });
  await service.listen(options.kvPort);
  if (options.apiPort !== undefined) {
    // Only here: benchmarks of the store must not load a web server.
    const { serveApi } = await import("./api.ts");
    await serveApi(node, machine, options.apiPort);
  }
  process.on("message", (message: FromHarness) => void answer(message, node, machine, faults));
  process.once("SIGTERM", () => void stop(node, service));
  tell({ kind: "ready", peer: node.engine.peer, recovery: node.engine.recovery });
}

async function stop(node: ConsensusNode, service: KvService): Promise<void> {
  if (node.engine.status().role === "leader") await node.engine.transfer(null);
  service.close();
  await node.stop();
  process.exit(0);
}

/** Nothing may leave any more; the harness hears why, from the exit code if not from the message. */
function fatal(error: unknown): void {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`${text}\n`);
  const isInvariant = error instanceof Error && error.name === "AssertionError";
  const code = isInvariant ? EXIT_BROKEN_INVARIANT : EXIT_FATAL;
  if (process.send === undefined) process.exit(code);
  process.send({ kind: "fatal", message: text } satisfies FromNode, () => process.exit(code));
}

function tell(message: FromNode): void {
  if (process.connected) process.send!(message);
}

// ---- steering --------------------------------------------------------------------------------------

async function answer(
  { id, question }: FromHarness,
  node: ConsensusNode,
  machine: KvMachine,
  faults: DiskFaults,
): Promise<void> {
  tell({ kind: "answer", id, reply: await replyTo(question, node, machine, faults) });
}

async function replyTo(
  question: Question,
  node: ConsensusNode,
  machine: KvMachine,
  faults: DiskFaults,
): Promise<Reply> {
  const { engine } = node;
  switch (question.ask) {
    case "status":
      return { ask: "status", status: statusOf(node, machine, faults) };
    case "change":
      return { ask: "change", outcome: await engine.changeMembership({ operations: question.operations }) };
    case "transfer":
      return { ask: "transfer", result: await engine.transfer(null, question.force) };
    case "disk":
      setFault(faults, question.fault);
      return { ask: "disk" };
    default:
      return assertNever(question, "replyTo");
  }
}

function statusOf({ engine }: ConsensusNode, machine: KvMachine, faults: DiskFaults): NodeStatus {
  const { peer, role, term, leader, established, commit, applied, configuration } = engine.status();
  const { voters, learners, votersOutgoing } = configuration;
  const match: Record<PeerKey, number> = {};
  for (const member of [...voters, ...learners]) match[member] = engine.followerOf(member)?.match ?? 0;
  return {
    peer,
    role,
    term,
    leader,
    established,
    commit,
    applied,
    voters,
    learners,
    match,
    isJoint: votersOutgoing.length > 0,
    recovery: engine.recovery,
    hash: machine.hash,
    hashAt: machine.applied,
    keys: machine.size,
    struck: Object.values(faults.counts).reduce((sum, count) => sum + count, 0),
  };
}

function setFault(faults: DiskFaults, fault: DiskFault): void {
  faults.heal();
  switch (fault.kind) {
    case "none":
      return;
    case "full":
      return faults.fill();
    case "sync-error":
      return faults.failSyncs();
    case "slow":
      return faults.delaySyncs(fault.ms);
    case "hung":
      return faults.hangSyncs();
    default:
      return assertNever(fault, "setFault");
  }
}

// ---- telling ---------------------------------------------------------------------------------------

/** Written by hand and at once: what was written before a kill -9 is in the file. */
function eventLog(path: string, peer: PeerKey): (event: RaftEvent) => void {
  const file = openSync(path, "a");
  const write = (event: EventLine["event"], term: number): void => {
    const line: EventLine = { peer, event, term, atMs: Date.now() };
    writeSync(file, `${JSON.stringify(line)}\n`);
    tell({ kind: "role", line });
  };
  return (event) => {
    if (event.kind === "established") write("established", event.term);
    if (event.kind === "role" && event.role === "leader") write("leader", event.term);
    if (event.kind === "role" && event.role === "follower") write("follower", event.term);
    const campaigns = event.kind === "role" && (event.role === "pre-candidate" || event.role === "candidate");
    if (campaigns) write("campaign", event.term);
  };
}

function loggerOf(nodeId: string): Logger {
  const path = process.env["KV_NODE_LOG"];
  if (path === undefined) return { info: () => undefined, warn: () => undefined, error: () => undefined };
  const write = (level: string) => (fields: object, message: string) => {
    appendFileSync(path, `${new Date().toISOString()} ${nodeId} ${level} ${message} ${JSON.stringify(fields)}\n`);
  };
  return { info: write("info"), warn: write("warn"), error: write("error") };
}
