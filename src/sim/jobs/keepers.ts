// Who keeps the doors: operators that make, revoke and replace API keys and revoke certificates, at whichever node, and look at
// what each node lets in. Names are few, so that one comes again after it was revoked.

import type { Random } from "../../core/kit/random.ts";
import type { TenureError } from "../../core/kit/errors.ts";
import type { Request } from "../../ports/jobs.ts";
import type { Owner } from "../kernel/index.ts";
import type { JobsCluster, JobsServer } from "./cluster.ts";
import type { Asked } from "./oracle/oracle.ts";
import { insist } from "./post.ts";

const NAMES = ["k1", "k2", "k3"];
const REQUEST: Request = { caller: "keeper", idempotencyKey: null, bodyHash: "" };
/** So often the same is asked again where it was not answered. */
const AGAIN_MAX = 6;
const AGAIN_MS: readonly [number, number] = [20, 300];
const YEARS_MS = 20 * 365 * 86_400_000;
/** Codes that say nothing of keys. */
const NOT_NOW: readonly string[] = [
  "NOT_LEADER",
  "OUTCOME_UNKNOWN",
  "OVERLOADED",
  "UNCOMMITTED_LIMIT",
  "TRANSFER_IN_PROGRESS",
  "ERR_NO_LEADER",
];

interface Change {
  readonly ask: (server: JobsServer) => Promise<unknown>;
  /** False: this code says nothing of keys. */
  readonly judge: (asked: Asked, error: TenureError | null) => boolean;
}

export class Keepers {
  readonly #cluster: JobsCluster;
  readonly #random: Random;
  readonly #owner: Owner;

  constructor(cluster: JobsCluster) {
    this.#cluster = cluster;
    this.#random = cluster.random.fork("keepers");
    this.#owner = cluster.world.scheduler.owner("keepers");
  }

  start(): void {
    const { keyChanges, faultsUntilMs } = this.#cluster.knobs;
    for (let at = 0; at < keyChanges; at++) {
      const random = this.#random.fork(`change/${at}`);
      this.#cluster.later(this.#owner, random.between(0.05, 1) * faultsUntilMs, () => {
        if (random.chance(0.25)) return this.#send(random, this.#certificate(`cert-${at}`, random));
        const name = random.pick(NAMES);
        if (random.chance(0.5)) return this.#send(random, this.#revocation(name));
        // Now and then under the hash of another one.
        this.#send(random, this.#creation(name, `sha-${random.chance(0.15) ? random.below(at + 1) : at}`));
      });
    }
  }

  #creation(name: string, sha256: string): Change {
    const { doors } = this.#cluster;
    return {
      ask: ({ keys }) => keys.create(REQUEST, { name, role: "viewer", sha256 }),
      judge: (asked, error) => {
        if (error !== null && error.code !== "KEY_EXISTS") return false;
        doors.answered(asked, error === null ? "there" : "taken", name, sha256);
        return true;
      },
    };
  }

  #revocation(name: string): Change {
    const { doors } = this.#cluster;
    return {
      ask: ({ keys }) => keys.revoke(REQUEST, name),
      judge: (asked, error) => {
        if (error !== null && error.code !== "NOT_FOUND") return false;
        doors.answered(asked, error === null ? "gone" : "unknown", name, "");
        return true;
      },
    };
  }

  #certificate(sha256: string, random: Random): Change {
    const { doors, world, names } = this.#cluster;
    const isSoonOver = random.chance(0.3);
    const notAfterMs = world.node(names[0]!).process.machine.wallMs() + (isSoonOver ? 60_000 : YEARS_MS);
    return {
      ask: ({ certificates }) => certificates.revoke(REQUEST, { sha256, id: "spiffe://sim/one", notAfterMs }),
      judge: (asked, error) => {
        if (error === null) doors.certificateAnswered(asked, sha256);
        return error === null || (isSoonOver && error.code === "BAD_REQUEST");
      },
    };
  }

  #send(random: Random, change: Change): void {
    const { world, doors, oracle } = this.#cluster;
    insist<unknown>(this.#cluster, {
      owner: this.#owner,
      random: (times) => random.fork(`ask/${times}`),
      againMs: AGAIN_MS,
      againMax: AGAIN_MAX,
      letter: (to) => ({
        ask: change.ask,
        judge: (asked, answer) => {
          const error = answer.ok ? null : answer.error;
          if (change.judge(asked, error) || NOT_NOW.includes(error?.code ?? "")) return;
          world.report(to, new Error(`${to} answered a keeper with ${error?.code}: ${error?.message}`));
        },
        look: ({ fold }) => doors.check(to, oracle.positionOf(to), fold),
      }),
    });
  }
}
