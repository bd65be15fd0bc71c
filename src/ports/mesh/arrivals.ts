// Everything that arrived at this site, its own events and those of other sites, in one numbering: equal on all nodes of the site.

import type { LineId } from "../../core/mesh/model.ts";

export interface Arrivals {
  /** This site's own line; null: it has none yet. */
  logId(): LineId | null;
  /** Of the last event that is applied here. */
  readonly last: number;
  /** What arrived after this number, in order. LOG_COMPACTED where it is not kept any more. */
  read(after: number, wanted: { readonly max: number; readonly bytesMax: number }): Promise<ArrivalsPage>;
  /** Reads both archives whole: bytes, links, trees, and each foreign line. Rejects with the signal's reason when that aborts. */
  verify(signal: AbortSignal): Promise<ArrivalsVerified>;
}

export interface ArrivalsPage {
  readonly events: readonly ArrivalRecord[];
  /** Go on from here. */
  readonly through: number;
}

export interface ArrivalRecord {
  readonly arrival: number;
  /** Null: of this site itself, which has no name for it (yet). */
  readonly line: LineId | null;
  readonly lineSequence: number;
  readonly eventHash: string;
  /** What is hashed; null: its text did not leave its site. */
  readonly bytes: Uint8Array | null;
}

export type ArrivalsVerified =
  | {
      readonly valid: true;
      /** The first arrival that is kept. */
      readonly first: number;
      readonly through: number;
      /** Of this site's own line. */
      readonly headHash: string | null;
      readonly root: string;
    }
  | {
      readonly valid: false;
      readonly first: number;
      readonly firstBrokenSequence: number;
      /** Null: not known of what can't be read. */
      readonly line: LineId | null;
      readonly lineSequence: number | null;
      readonly reason: string;
    };
