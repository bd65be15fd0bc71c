// What makes the load of the rows: agents that poll, streams that follow, jobs that are submitted at a steady rate. All of it
// runs in the benchmark's own process, at a lower priority than the server.

import { randomUUID } from "node:crypto";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "../test/servers/index.ts";
import { HttpConnection } from "./http-connection.ts";

const TTL_MS = 60_000;
const WAIT_MS = 5_000;

interface Lease {
  readonly job_id: string;
  readonly job_epoch: number;
  readonly lease_id: string;
  readonly leader_epoch: number;
}

/** Agents of a kind each, of which every one has a call that waits. */
export class Agents {
  readonly #connections: HttpConnection[] = [];
  readonly #lanes: Promise<void>[] = [];
  #isOver = false;
  committed = 0;
  polls = 0;

  constructor(url: string, key: string, count: number) {
    for (let n = 0; n < count; n++) this.#lanes.push(this.#lane(url, key, n));
  }

  async #lane(url: string, key: string, n: number): Promise<void> {
    const connection = new HttpConnection(url, key);
    this.#connections.push(connection);
    const session = randomUUID();
    const agent = { name: `turns-${n}`, session, kinds: [kindOf(n)], platform: "bench", capacity: 4 };
    try {
      for (let poll = 1; !this.#isOver; poll++) {
        const call = { agent, max: 4, ttl_ms: TTL_MS, wait_ms: WAIT_MS, poll, answered: poll - 1 };
        const { leases } = await connection.post<{ leases: readonly Lease[] }>("/v1/leases", JSON.stringify(call));
        this.polls++;
        if (leases.length === 0) continue;
        const results = leases.map(({ job_id, job_epoch, lease_id, leader_epoch }) => ({
          job_id,
          job_epoch,
          lease_id,
          leader_epoch,
          outcome: "completed",
        }));
        await connection.post("/v1/results", JSON.stringify({ session, results }));
        this.committed += leases.length;
      }
    } catch (error) {
      if (!this.#isOver) throw error;
    }
  }

  async end(): Promise<void> {
    this.#isOver = true;
    for (const connection of this.#connections) connection.close();
    await Promise.all(this.#lanes);
  }
}

export function kindOf(n: number): string {
  return `turns-${n}`;
}

/** Streams of events, read and counted. */
export class Streams {
  readonly #sockets: Socket[] = [];
  readonly received: number[];

  constructor(url: string, key: string, count: number, queryOf: (n: number) => string) {
    this.received = new Array<number>(count).fill(0);
    const { hostname, port, host } = new URL(url);
    for (let n = 0; n < count; n++) {
      const socket = connect({ host: hostname, port: Number(port) });
      socket.write(`GET /v1/events?${queryOf(n)} HTTP/1.1\r\nhost: ${host}\r\nx-api-key: ${key}\r\n\r\n`);
      socket.on("data", (chunk: Buffer) => (this.received[n]! += chunk.length));
      socket.on("error", () => undefined);
      this.#sockets.push(socket);
    }
  }

  /** Each has its head and its first line. */
  connected(): Promise<void> {
    return waitFor("every stream to begin", () => this.received.every((bytes) => bytes > 0));
  }

  end(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Jobs at a steady rate, `batch` in each request, for some time. Returns how many. */
export async function submitted(
  url: string,
  key: string,
  load: {
    readonly ms: number;
    readonly everyMs: number;
    readonly batch: number;
    readonly kindOf: (n: number) => string;
  },
): Promise<number> {
  const connection = new HttpConnection(url, key);
  let jobs = 0;
  try {
    const startedMs = performance.now();
    for (let n = 0; performance.now() < startedMs + load.ms; n++) {
      const waitMs = startedMs + n * load.everyMs - performance.now();
      if (waitMs > 0) await sleep(waitMs);
      const batch = Array.from({ length: load.batch }, (_, at) => ({ kind: load.kindOf(jobs + at), payload: { n } }));
      const answer = await connection.post<object>("/v1/jobs", JSON.stringify({ jobs: batch }));
      if (answer === null) throw new Error("no answer");
      jobs += load.batch;
    }
    return jobs;
  } finally {
    connection.close();
  }
}
