// Known mistakes, planted into every server or agent of a run of `chaos jobs`: the harness must report each of them, or it
// would not have seen the same mistake of ours either. Source lines are changed as they are loaded.

import type { Edit } from "../../src/sim/mutants/patch.ts";
import type { JobsFault } from "./jobs-faults.ts";
import type { GhostTold } from "./jobs-ghosts.ts";

export type JobsPlantName =
  | "answer-before-commit"
  | "lease-before-commit"
  | "result-without-job-epoch"
  | "unknown-told-as-refused"
  | "keys-forgotten"
  | "agent-runs-twice"
  | "unknown-key-refused"
  | "rewrite-unnoticed";

export interface JobsPlant {
  readonly server: readonly Edit[];
  readonly agent: readonly Edit[];
  /** Those that bring it to light. */
  readonly faults: readonly JobsFault[];
  /** Traffic goes on until it is, within the time of the run; by default as long as without a plant. */
  readonly isSeen?: ((ghosts: readonly GhostTold[]) => boolean) | undefined;
}

const REIGN = "controller/jobs/jobs-reign.ts";

export const JOBS_PLANTS: Readonly<Record<JobsPlantName, JobsPlant>> = {
  /** A 200 leaves while its events are on their way: what was stranded with the leader is lost. */
  "answer-before-commit": {
    server: [
      {
        file: REIGN,
        find: "await (decided.written ?? this.#reign.confirmed());",
        replace: "if (decided.written === null) await this.#reign.confirmed();",
      },
    ],
    agent: [],
    faults: ["strand-leader"],
  },
  /** An agent works under a lease that never was. */
  "lease-before-commit": {
    server: [{ file: "controller/jobs/leasing.ts", find: "    await given.written;\n", replace: "" }],
    agent: [],
    faults: ["strand-leader"],
  },
  /** Whoever names a job that somebody has may end it (trap 50). */
  "result-without-job-epoch": {
    server: [
      {
        file: "core/jobs/decide/results.ts",
        find: "return run !== null && run.session === session && isSameLease(run, ref);",
        replace: "return run !== null;",
      },
    ],
    agent: [],
    faults: ["kill-agent", "stop-agent"],
    isSeen: (ghosts) => ghosts.some(({ verdict }) => verdict === "taken"),
  },
  /** "Nothing was done", where nobody knows (trap 66). */
  "unknown-told-as-refused": {
    server: [
      {
        file: "controller/journal/writer.ts",
        find: '          new TenureError(\n            "OUTCOME_UNKNOWN",',
        replace: '          new TenureError(\n            "NOT_LEADER",',
      },
    ],
    agent: [],
    faults: ["stop-followers"],
  },
  /** The same submission again is another one. */
  "keys-forgotten": {
    server: [
      {
        file: "core/jobs/state/idempotency.ts",
        find: "if (request.idempotencyKey === null) return NEW;",
        replace: "if (request !== null) return NEW;",
      },
    ],
    agent: [],
    faults: ["reset-clients", "cut-clients"],
  },
  /** The agent calls its handler twice for one lease. */
  "agent-runs-twice": {
    server: [],
    agent: [
      {
        file: "agent/crew.ts",
        find: "else void this.#run(attempt).catch(",
        replace: "else for (let runs = 0; runs < 2; runs++) void this.#run(attempt).catch(",
      },
    ],
    faults: ["kill-follower"],
  },
  /** A server answers 401 to a key that it does not know, whatever it may have missed. */
  "unknown-key-refused": {
    server: [{ file: "api/traffic/callers.ts", find: "    await this.#doorman.rounds.next();\n", replace: "" }],
    agent: [],
    faults: ["wipe-follower", "join", "stop-follower"],
  },
  /** Any sequence is as good as any other (trap 82): readers with a filter pass over what took the place of lost events. Postgres. */
  "rewrite-unnoticed": {
    server: [
      {
        file: "api/streams/event-point.ts",
        find: "(await events.hashAt(point.sequence, pointInTurn)) === point.hash;",
        replace: '(await events.hashAt(point.sequence, pointInTurn)) !== "";',
      },
    ],
    agent: [],
    faults: [],
  },
};
