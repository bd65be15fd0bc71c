// Tenure's API without its SDK: prepared text over connections of our own, one for each lane. It says what the servers can
// do; what the SDK adds is measured next to it (jobs-sdk.ts).

import { randomUUID } from "node:crypto";
import { HttpConnection } from "./http-connection.ts";
import { KIND, type Side, type Told, type Worker, type WorkOptions } from "./jobs-side.ts";

const TTL_MS = 15_000;
/** A poll that waits in vain comes back after it, so that a worker can be stopped. */
const WAIT_MS = 500;

interface Lease {
  readonly job_id: string;
  readonly job_epoch: number;
  readonly lease_id: string;
  readonly leader_epoch: number;
  readonly spec: { readonly payload: { readonly sentMs: number } };
}

export class RawSide implements Side {
  readonly #url: string;
  readonly #key: string;
  readonly #submitters: HttpConnection[] = [];
  readonly #run = randomUUID();
  #submitted = 0;

  /** `url`: the leader's. */
  constructor(url: string, key: string) {
    this.#url = url;
    this.#key = key;
  }

  async submit(lane: number, sentMs: number, count: number): Promise<void> {
    const connection = (this.#submitters[lane] ??= new HttpConnection(this.#url, this.#key));
    const job = `{"kind":"${KIND}","payload":{"sentMs":${sentMs}}}`;
    const body = count === 1 ? job : `{"jobs":[${`${job},`.repeat(count - 1)}${job}]}`;
    await connection.post("/v1/jobs", body, `idempotency-key: ${this.#run}-${this.#submitted++}\r\n`);
  }

  async work(options: WorkOptions, told: Told): Promise<Worker> {
    const order = { isStopped: false };
    const lanes = Array.from({ length: options.lanes }, (_, lane) => this.#lane(lane, options.batch, told, order));
    const done = Promise.all(lanes);
    done.catch((error: unknown) => told.failed(error));
    return {
      stop: async () => {
        order.isStopped = true;
        await done.catch(() => undefined);
      },
    };
  }

  async #lane(lane: number, batch: number, told: Told, order: { readonly isStopped: boolean }): Promise<void> {
    const connection = new HttpConnection(this.#url, this.#key);
    const session = randomUUID();
    const agent = { name: `${this.#run}-${lane}`, session, kinds: [KIND], platform: "bench", capacity: batch };
    const call = JSON.stringify({ agent, max: batch, ttl_ms: TTL_MS, wait_ms: WAIT_MS }).slice(0, -1);
    try {
      for (let poll = 1; !order.isStopped; poll++) {
        // As an agent does it; here whatever is not answered ends the lane.
        const numbered = `${call},"poll":${poll},"answered":${poll - 1}}`;
        const { leases } = await connection.post<{ leases: readonly Lease[] }>("/v1/leases", numbered);
        if (leases.length === 0) continue;
        for (const { spec } of leases) told.handled(spec.payload.sentMs);
        const answer = await connection.post<unknown>("/v1/results", resultsBody(session, leases, batch));
        told.committed(takenOf(answer, batch));
      }
    } finally {
      connection.close();
    }
  }

  async close(): Promise<void> {
    for (const connection of this.#submitters) connection.close();
  }
}

function resultsBody(session: string, leases: readonly Lease[], batch: number): string {
  const results = leases.map(
    ({ job_id, job_epoch, lease_id, leader_epoch }) =>
      `"job_id":"${job_id}","job_epoch":${job_epoch},"lease_id":"${lease_id}","leader_epoch":${leader_epoch},"outcome":"completed","result":null`,
  );
  if (batch === 1) return `{"session":"${session}",${results[0]}}`;
  return `{"session":"${session}","results":[${results.map((one) => `{${one}}`).join(",")}]}`;
}

/** Only what was taken counts: a refused result is not a committed job. */
function takenOf(answer: unknown, batch: number): number {
  const results = batch === 1 ? [answer] : (answer as { results: readonly unknown[] }).results;
  return results.filter((one) => (one as { ok?: boolean }).ok === true).length;
}
