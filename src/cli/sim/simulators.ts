// The simulators that `npm run sim` knows, a row each, and what is common to the jobs and results of all. A row is loaded when it is
// asked for: a thread first plants its mistake into the sources.

import { systemDigest } from "../../drivers/system/digest.ts";
import type { ElectorFault, ElectorLimits, ElectorRunOptions, ElectorRunResult } from "../../sim/elector/index.ts";
import type { JobsFault, JobsLimits, JobsRunOptions, JobsRunResult } from "../../sim/jobs/index.ts";
import type { SeedOptions } from "../../sim/kernel/index.ts";
import type { MeshFault, MeshLimits, MeshRunOptions, MeshRunResult } from "../../sim/mesh/index.ts";
import { ELECTOR_MUTANTS } from "../../sim/mutants/elector-list.ts";
import { JOBS_MUTANTS } from "../../sim/mutants/jobs-list.ts";
import { MUTANTS } from "../../sim/mutants/list.ts";
import { MESH_MUTANTS } from "../../sim/mutants/mesh-list.ts";
import type { Mutant } from "../../sim/mutants/patch.ts";
import { SPREAD_MUTANTS } from "../../sim/mutants/spread-list.ts";
import { TC_MUTANTS } from "../../sim/mutants/tc-list.ts";
import { TXN_MUTANTS } from "../../sim/mutants/txn-list.ts";
import type { KnobLimits, RaftFault, RunOptions, RunResult } from "../../sim/raft/index.ts";
import type { SpreadFault, SpreadLimits, SpreadRunOptions, SpreadRunResult } from "../../sim/spread/index.ts";
import type { TcFault, TcLimits, TcRunOptions, TcRunResult } from "../../sim/tc/index.ts";
import type { TxnFault, TxnLimits, TxnRunOptions, TxnRunResult } from "../../sim/txn/index.ts";

export interface Results {
  readonly raft: RunResult;
  readonly elector: ElectorRunResult;
  readonly jobs: JobsRunResult;
  readonly mesh: MeshRunResult;
  readonly spread: SpreadRunResult;
  readonly tc: TcRunResult;
  readonly txn: TxnRunResult;
}

/** What is simulated: a Raft cluster, electors against a server, jobs on servers, whole sites of a mesh, sites that spread their lines, transaction coordinators, or transactions over islands. */
export type Subject = keyof Results;
export type Result = Results[Subject];
export type AnyFault = RaftFault | ElectorFault | JobsFault | MeshFault | SpreadFault | TcFault | TxnFault;
/** With limits and a plan of its subject. */
export type SeedJob = SeedOptions<
  KnobLimits | ElectorLimits | JobsLimits | MeshLimits | SpreadLimits | TcLimits | TxnLimits,
  AnyFault
>;
export type RunJob = SeedJob & { readonly trace?: RunOptions["trace"] };

/** Adds up the runs of one subject. */
interface Total {
  add(result: Result): void;
  readonly simulatedHours: number;
  complaints(): string[];
  progress(): string;
  summary(): object;
}

interface Simulator {
  readonly mutants: readonly Mutant[];
  /** Within so many seeds each planted mistake is found, whatever the first one is; one that needs luck needs a ploy. */
  readonly mutantSeedsMax: number;
  /** How many nodes a plan may name: n1, n2, … */
  nodesOf(knobs: Result["knobs"]): number;
  load(): Promise<{ run(job: RunJob): Promise<Result>; total(nowMs: () => number): Total }>;
}

export const SIMULATORS: Readonly<Record<Subject, Simulator>> = {
  raft: {
    mutants: MUTANTS,
    mutantSeedsMax: 300,
    nodesOf: ({ voters, learners, spares }: RunResult["knobs"]) => voters + learners + spares,
    load: async () => {
      const { raftCampaign: total, runSeed } = await import("../../sim/raft/index.ts");
      return { run: (job) => runSeed({ ...job, digest: systemDigest } as RunOptions), total };
    },
  },
  elector: {
    mutants: ELECTOR_MUTANTS,
    mutantSeedsMax: 300,
    nodesOf: ({ instances }: ElectorRunResult["knobs"]) => instances,
    load: async () => {
      const { electorCampaign: total, runElectorSeed } = await import("../../sim/elector/index.ts");
      return { run: (job) => runElectorSeed(job as ElectorRunOptions), total };
    },
  },
  jobs: {
    mutants: JOBS_MUTANTS,
    mutantSeedsMax: 30,
    nodesOf: ({ servers }: JobsRunResult["knobs"]) => servers,
    load: async () => {
      const { JobsCampaign, runJobsSeed } = await import("../../sim/jobs/index.ts");
      const total = (nowMs: () => number): Total => new JobsCampaign(nowMs);
      return { run: (job) => runJobsSeed({ ...job, digest: systemDigest } as JobsRunOptions), total };
    },
  },
  mesh: {
    mutants: MESH_MUTANTS,
    mutantSeedsMax: 60,
    nodesOf: () => Infinity,
    load: async () => {
      const { MeshCampaign, runMeshSeed } = await import("../../sim/mesh/index.ts");
      const total = (nowMs: () => number): Total => new MeshCampaign(nowMs);
      return { run: (job) => runMeshSeed({ ...job, digest: systemDigest } as MeshRunOptions), total };
    },
  },
  spread: {
    mutants: SPREAD_MUTANTS,
    mutantSeedsMax: 100,
    nodesOf: ({ sites }: SpreadRunResult["knobs"]) => sites,
    load: async () => {
      const { SpreadCampaign, runSpreadSeed } = await import("../../sim/spread/index.ts");
      const total = (nowMs: () => number): Total => new SpreadCampaign(nowMs);
      return { run: (job) => runSpreadSeed(job as SpreadRunOptions), total };
    },
  },
  tc: {
    mutants: TC_MUTANTS,
    mutantSeedsMax: 200,
    nodesOf: ({ nodes }: TcRunResult["knobs"]) => nodes,
    load: async () => {
      const { runTcSeed, tcCampaign: total } = await import("../../sim/tc/index.ts");
      return { run: (job) => runTcSeed({ ...job, digest: systemDigest } as TcRunOptions), total };
    },
  },
  txn: {
    mutants: TXN_MUTANTS,
    mutantSeedsMax: 60,
    nodesOf: () => Infinity,
    load: async () => {
      const { runTxnSeed, txnCampaign: total } = await import("../../sim/txn/index.ts");
      return { run: (job) => runTxnSeed({ ...job, digest: systemDigest } as TxnRunOptions), total };
    },
  },
};
