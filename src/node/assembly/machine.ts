// What the servers' committed log is folded into: cluster commands and the hash chain, around the logs of scopes and jobs.

import { ClusterMachine, innerProposals } from "../../controller/cluster/cluster-machine.ts";
import { JOBS_LOG_KEPT, SiteJournal, type SiteJournalOptions } from "../../controller/journal/site-journal.ts";
import { assert } from "../../core/kit/assert.ts";
import { ScopesFold } from "../../core/scopes/index.ts";
import { archivedMachine, type Archive, type FeedBounds, RaftLog } from "../../logs/index.ts";
import type { Lead, Proposals } from "../../ports/consensus.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Fold } from "../../ports/log.ts";

/** The inner machines' places, for ever: they stand in every entry. */
const SCOPES = 0;
export const JOBS = 1;

const NO_ARCHIVE = { capture: () => Promise.resolve(new Uint8Array(0)), restore: () => Promise.resolve() };

export interface ServerMachine {
  readonly machine: ClusterMachine;
  readonly scopes: { readonly log: RaftLog; readonly fold: ScopesFold };
  readonly jobs: { readonly log: RaftLog; readonly fold: SiteJournal };
  /** Where the jobs' events are kept: before the first entry is applied. Without one only snapshots can be looked at. */
  readonly keepIn: (archive: Pick<Archive, "capture" | "restore" | "append">) => void;
  /** The engine, once there is one: what the logs propose goes there, tagged for the machine. */
  readonly attach: (consensus: Proposals & Pick<Lead, "status">) => void;
}

interface MachineOptions {
  readonly journal?: SiteJournalOptions | undefined;
  /** For the simulator: sees each record before the journal does. */
  readonly watched?: ((journal: SiteJournal) => Fold) | undefined;
}

export function serverMachine(digest: Digest, { journal, watched }: MachineOptions = {}): ServerMachine {
  let attached: Parameters<ServerMachine["attach"]>[0] | null = null;
  const engine = (): NonNullable<typeof attached> => {
    assert(attached !== null, "the log is used after its engine was attached");
    return attached;
  };
  const lead: Pick<Lead, "status"> = { status: () => engine().status() };
  const logAt = (place: number, fold: Fold, kept?: FeedBounds): RaftLog =>
    new RaftLog({ fold, kept, lead, proposals: innerProposals({ propose: (data) => engine().propose(data) }, place) });
  const scopes = new ScopesFold();
  const jobs = new SiteJournal(digest, journal);
  const [scopesLog, jobsLog] = [logAt(SCOPES, scopes), logAt(JOBS, watched?.(jobs) ?? jobs, JOBS_LOG_KEPT)];
  let kept: Pick<Archive, "capture" | "restore"> = NO_ARCHIVE;
  return {
    machine: new ClusterMachine([scopesLog, archivedMachine(jobsLog, () => kept)], digest),
    keepIn: (archive) => {
      kept = archive;
      jobs.follow((sealed) => archive.append([sealed]));
    },
    scopes: { log: scopesLog, fold: scopes },
    jobs: { log: jobsLog, fold: jobs },
    attach: (consensus) => {
      attached = consensus;
    },
  };
}
