// What a thread keeps of all sites of the mesh: the merged state of jobs, agents and controllers, the newest events for search, and where
// receipts and checkpoints are. It follows the arrivals of this site (own events and foreign ones, in one numbering) and may lag behind them.
// Nothing is ever decided from it: it can be deleted and is then built again from the two archives, and from a saved state where they are cut.

import type { LineId } from "../../core/mesh/model.ts";
import type { LineMark, ShownJob } from "../../core/mesh/merge/shown-job.ts";
import type { JobState } from "../../core/jobs/model.ts";
import type { ControllerView } from "./mesh.ts";

export type { LineMark };

/** One event, own or foreign, as it was applied at this site. */
export interface ArrivedEvent {
  /** Its number among all that was applied here: 1 for the first. */
  readonly arrival: number;
  readonly line: LineId;
  readonly generation: number;
  readonly lineSequence: number;
  /** Its canonical bytes, or the hash of one whose text did not leave its site. */
  readonly event: Uint8Array | { readonly hash: string };
  /** The receipt that it came with; null for an own event. */
  readonly receipt: number | null;
  /** When this site took it, by the wall clock of its leader. */
  readonly arrivedMs: number;
  /** Of the last item of a page: its signed note, and the page's `after`. */
  readonly checkpoint?: { readonly after: number; readonly note: string } | undefined;
}

export interface MeshViews {
  /** For whoever feeds: the arrival up to which everything is in, after all puts so far, whatever became of them. 0: from the start. */
  through(): Promise<number>;
  /**
   * In order of arrival; puts may be pipelined. What is at or below `through` changes nothing. Resolves when it outlives the process.
   * One that is refused (DISK_FULL, DISK_DAMAGED, BACKEND_UNAVAILABLE, OVERLOADED) has changed nothing, and so are all after it until
   * `through` was asked for: ask, and feed from there. The bytes must stay as they are until then.
   */
  put(batch: readonly ArrivedEvent[]): Promise<void>;
  /** A line that is forked or evicted leaves the hash, and its claims on jobs count after all others. Null: it counts again. The same once more changes nothing. */
  mark(line: LineId, mark: LineMark | null): Promise<void>;
  /** The last event of this line that is here; 0: none. */
  lastOf(line: LineId): Promise<number>;
  /** The receipt with which this event came; null: an own event, or not here yet. */
  receiptOf(line: LineId, sequence: number): Promise<number | null>;
  /** The first event that came with this receipt; null: not here yet, or not any more. */
  receiptPlace(receipt: number): Promise<MeshPlace | null>;
  /** The stored checkpoint with the smallest size above `after`; null: none. */
  checkpointAfter(line: LineId, after: number): Promise<MeshCheckpoint | null>;
  jobs(query: MeshJobQuery): Promise<MeshJobPage>;
  agents(query: MeshAgentQuery): Promise<MeshAgentPage>;
  /** By id. */
  controllers(): Promise<readonly ControllerView[]>;
  events(query: MeshEventQuery): Promise<MeshEventPage>;
  hash(): Promise<MeshHash>;
  /** The last arrival of the saved state, from which a file that is lost goes on; null: there is none. */
  readonly savedThrough: number | null;
  /**
   * Builds the projection aside, from nothing or from the saved state, and compares its hash with that of the present one as it was when
   * this began. `arrivals`: all that follow; what comes after that moment is not taken from them. Where both are equal and `saves` is set, what
   * was built is the saved state from then on.
   */
  replay(how: ReplayHow, arrivals: AsyncIterable<readonly ArrivedEvent[]>): Promise<MeshReplay>;
  /** What is shown now is the saved state from then on, although it was compared with nothing. */
  save(): Promise<void>;
  /** Sets aside what was kept and begins anew, as after `onReset`. From nothing: the saved state goes too. */
  rebuild(reason: string, from: ReplayHow["from"]): Promise<void>;
  /** What was kept is gone, or the thread that writes died: ask for `through`, mark lines again, and feed from there. */
  onReset(listener: () => void): void;
  close(): Promise<void>;
}

export interface ReplayHow {
  readonly from: "nothing" | "saved";
  readonly saves: boolean;
  /** The archive of receipts begins with it: where receipts before it are is not kept either, here and in what is saved. */
  readonly firstReceipt?: number | undefined;
}

export interface MeshPlace {
  readonly arrival: number;
  readonly line: LineId;
  readonly lineSequence: number;
}

export interface MeshCheckpoint {
  readonly size: number;
  readonly after: number;
  readonly note: string;
}

export interface MeshJobQuery {
  readonly states?: readonly JobState[] | undefined;
  /** A controller id. */
  readonly site?: string | undefined;
  /** Words that must all be in its kind, queue, platform, labels, submitter or error. */
  readonly search?: string | undefined;
  /** From the page before. */
  readonly cursor?: string | undefined;
  readonly limit: number;
}

/** What is known of the line that something was said in. */
export interface MeshSource {
  /** Null: the line is sound. */
  readonly mark: LineMark | null;
  /** When an event of the line last came; by this site's wall clock. */
  readonly arrivedMs: number;
}

export interface MeshJob extends ShownJob, MeshSource {}

export interface MeshJobPage {
  /** Newest at this site first. May be fewer than the limit, or none, while there is a `next`. */
  readonly jobs: readonly MeshJob[];
  readonly next: string | null;
  readonly through: number;
}

export interface MeshAgentQuery {
  readonly site?: string | undefined;
  readonly cursor?: string | undefined;
  readonly limit: number;
}

export interface MeshAgent extends MeshSource {
  readonly name: string;
  readonly site: string;
  readonly line: LineId;
  readonly isOnline: boolean;
  readonly isDraining: boolean;
  readonly platform: string | null;
  readonly capacity: number;
  readonly kinds: readonly string[];
  readonly labels: readonly (readonly [string, string])[];
  /** Of its line's last word about it, by the clock of that line. */
  readonly changedAtMs: number;
}

export interface MeshAgentPage {
  /** By name, then by line. */
  readonly agents: readonly MeshAgent[];
  readonly next: string | null;
  readonly through: number;
}

export interface MeshEventQuery {
  /** Undefined: the newest that fit. */
  readonly afterArrival?: number | undefined;
  readonly line?: LineId | undefined;
  /** A controller id: all its generations. */
  readonly site?: string | undefined;
  readonly eventType?: string | undefined;
  readonly entityId?: string | undefined;
  readonly limit: number;
}

/** A row of `event_log`: the newest million. */
export interface MeshEvent {
  readonly arrival: number;
  readonly line: LineId;
  readonly generation: number;
  readonly lineSequence: number;
  readonly id: string;
  readonly timestamp: number;
  /** `withheld`: its text did not leave its site. */
  readonly eventType: string;
  readonly entityId: string;
  readonly entityType: string;
  /** JSON; of a long one `{"omittedBytes":n}`, the archive has it. */
  readonly payload: string;
  readonly sourceControllerId: string;
  readonly previousHash: string | null;
  readonly eventHash: string;
}

export interface MeshEventPage {
  /** In order of arrival. */
  readonly events: readonly MeshEvent[];
  /** Ask on from here; null: there is nothing more up to `through`. */
  readonly next: number | null;
  /** What is not kept any more ends here: 0, or the arrival before the oldest row. */
  readonly droppedThrough: number;
  readonly through: number;
}

export interface MeshHash {
  /** Over the rows of all lines that are not marked; independent of the order of arrival. */
  readonly hash: string;
  readonly through: number;
  /** Rows of those lines. */
  readonly rows: number;
  /** Arrivals below `through` that were never put: they had left the archive already. */
  readonly missing: number;
}

/** How the last replay of this node ended. */
export interface MeshReplayed {
  readonly atMs: number;
  /**
   * `differs`: what was shown was built anew. `broken`: an archive is damaged, and nothing was compared. `cut`: the archives do not begin with the
   * first event and no saved state reaches as far, so that nothing can be compared; they are sound.
   */
  readonly outcome: "equal" | "differs" | "broken" | "cut";
  readonly events: number;
  readonly reason: string | null;
}

export interface MeshReplay {
  readonly equal: boolean;
  /** That were replayed. */
  readonly events: number;
  readonly hash: string;
  readonly rebuiltHash: string;
  readonly rows: number;
  readonly rebuiltRows: number;
}
