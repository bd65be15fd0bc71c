// What the servers' committed log is folded into: cluster commands and the hash chain, around the logs of state (scopes, values), of jobs and of
// receipts (pages of other sites). A log of receipts that was never opened is in no snapshot: a site that is alone writes what
// releases without the mesh write, and they read it.

import { ClusterMachine, innerProposals } from "../../controller/cluster/cluster-machine.ts";
import { JOBS_LOG_KEPT, SiteJournal, type SiteJournalOptions } from "../../controller/journal/site-journal.ts";
import { ReceiptsFold } from "../../controller/mesh/receipts/receipts-fold.ts";
import { assert } from "../../core/kit/assert.ts";
import { archived } from "../../core/mesh/receipts/index.ts";
import { StateFold } from "../../core/state/index.ts";
import { archivedMachine, type Archive, type Captured, type FeedBounds, RaftLog } from "../../logs/index.ts";
import type { Lead, Proposals } from "../../ports/consensus.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Fold } from "../../ports/log.ts";
import type { StateMachine } from "../../ports/state-machine.ts";

/** The inner machines' places, for ever: they stand in every entry. */
export const STATE = 0;
export const JOBS = 1;
export const MESH = 2;

/** Receipts are read from their archive; nobody reads them from the servers' log. */
const RECEIPTS_LOG_KEPT = { recordsMax: 1 };
const NO_BYTES = new Uint8Array(0);

const NO_ARCHIVE = { capture: () => Promise.resolve(new Uint8Array(0)), restore: () => Promise.resolve() };

export interface ServerMachine {
  readonly machine: ClusterMachine;
  readonly state: { readonly log: RaftLog; readonly fold: StateFold };
  readonly jobs: { readonly log: RaftLog; readonly fold: SiteJournal };
  readonly mesh: { readonly log: RaftLog; readonly fold: ReceiptsFold };
  /** Where the jobs' events are kept: before the first entry is applied. Without one only snapshots can be looked at. */
  readonly keepIn: (archive: Captured & Pick<Archive, "append">) => void;
  /** The same for receipts. */
  readonly keepReceiptsIn: (archive: Captured & Pick<Archive, "append">) => void;
  /** The engine, once there is one: what the logs propose goes there, tagged for the machine. */
  readonly attach: (consensus: Proposals & Pick<Lead, "status">) => void;
}

interface MachineOptions {
  readonly journal?: SiteJournalOptions | undefined;
  /** For the simulator: sees each record before the journal does. */
  readonly watched?: ((journal: SiteJournal) => Fold) | undefined;
  /** The same of the state log. */
  readonly watchedState?: ((state: StateFold) => Fold) | undefined;
}

export function serverMachine(digest: Digest, { journal, watched, watchedState }: MachineOptions = {}): ServerMachine {
  let attached: Parameters<ServerMachine["attach"]>[0] | null = null;
  const engine = (): NonNullable<typeof attached> => {
    assert(attached !== null, "the log is used after its engine was attached");
    return attached;
  };
  const lead: Pick<Lead, "status"> = { status: () => engine().status() };
  const logAt = (place: number, fold: Fold, kept?: FeedBounds): RaftLog =>
    new RaftLog({ fold, kept, lead, proposals: innerProposals(engine, place) });
  const state = new StateFold();
  const jobs = new SiteJournal(digest, { ...journal, floorMs: () => mesh.state.floorMs });
  const mesh = new ReceiptsFold({ digest, own: () => jobs.chain.sequence });
  const [stateLog, jobsLog] = [
    logAt(STATE, watchedState?.(state) ?? state),
    logAt(JOBS, watched?.(jobs) ?? jobs, JOBS_LOG_KEPT),
  ];
  const meshLog = logAt(MESH, mesh, RECEIPTS_LOG_KEPT);
  let kept: Captured = NO_ARCHIVE;
  let keptReceipts: Captured = NO_ARCHIVE;
  const places = [
    stateLog,
    archivedMachine(jobsLog, () => kept),
    onceOpened(
      meshLog,
      archivedMachine(meshLog, () => keptReceipts),
    ),
  ];
  return {
    machine: new ClusterMachine(places, digest),
    keepIn: (archive) => {
      kept = archive;
      jobs.follow((sealed) => archive.append([sealed]));
    },
    keepReceiptsIn: (archive) => {
      keptReceipts = archive;
      mesh.follow((sealed) => archive.append([archived(sealed)]));
    },
    state: { log: stateLog, fold: state },
    jobs: { log: jobsLog, fold: jobs },
    mesh: { log: meshLog, fold: mesh },
    attach: (consensus) => {
      attached = consensus;
    },
  };
}

/** Without a state for as long as nobody has opened its log. */
function onceOpened(log: Pick<RaftLog, "head">, machine: StateMachine): StateMachine {
  return { ...machine, snapshot: () => (log.head().epoch === 0 ? NO_BYTES : machine.snapshot()) };
}
