// What the workers of a chaos run do: each job says every tenth of a second that it lives, from two processes of which one has left
// the job's session. The supervisor's stamps say when a worker was gone; these are the jobs' own, and need nobody's word.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nodeCookie } from "../../src/drivers/processes/index.ts";
import type { Json } from "../../src/core/kit/json.ts";
import type { TenureCluster } from "../servers/index.ts";
import type { NodeStamps } from "./node-stamps.ts";

/** The kernel's clock since boot, in hundredths of a second: a stamp is of somewhere within one. */
const TICK_NS = 10_000_000n;
const STAMP =
  'n=0; while [ $n -lt 30 ]; do n=$((n + 1)); read up idle </proc/uptime; echo "$TENURE_AGENT_COOKIE $up" >>"$STAMPS"; sleep 0.1; done';

export class StampedWork {
  readonly #file: string;
  readonly #cluster: TenureCluster;
  /** From the clock since boot to that of the logs: they differ by the time that the machine has slept. */
  readonly #offsetNs: bigint;

  constructor(cluster: TenureCluster) {
    this.#cluster = cluster;
    this.#file = join(cluster.nodes[0]!.home, "stamps");
    writeFileSync(this.#file, "");
    const [up = "0"] = readFileSync("/proc/uptime", "utf8").split(" ");
    this.#offsetNs = process.hrtime.bigint() - nsOf(up);
  }

  /** About three seconds of it. */
  get payload(): Json {
    return { command: ["sh", "-c", `setsid sh -c '${STAMP}' & ${STAMP}; wait`], env: { STAMPS: this.#file } };
  }

  /** How many stamps there are, and those that certainly fell into an open gate of their own node. */
  read(stamps: ReadonlyMap<string, NodeStamps>): { readonly count: number; readonly inGates: readonly string[] } {
    const byCookie = new Map(this.#cluster.nodes.map(({ id, dataDir }) => [nodeCookie(dataDir), stamps.get(id)!]));
    const lines = readFileSync(this.#file, "utf8").trimEnd().split("\n");
    const inGates = lines.filter((line) => {
      const [cookie = "", up = ""] = line.split(" ");
      const node = byCookie.get(cookie);
      if (node === undefined) throw new Error(`a stamp of nobody's: ${line}`);
      const fromNs = nsOf(up) + this.#offsetNs;
      // The offset itself may be wrong by a tick, either way.
      return node.isOpenAll(fromNs - TICK_NS, fromNs + 2n * TICK_NS);
    });
    return { count: lines.length, inGates };
  }
}

function nsOf(seconds: string): bigint {
  return BigInt(Math.round(Number(seconds) * 100)) * TICK_NS;
}
