// What the main thread and the two threads of mesh.sqlite say to each other (../messages.ts has what both files share).

import type { LineId } from "../../../core/mesh/model.ts";
import type {
  LineMark,
  MeshAgentPage,
  MeshAgentQuery,
  MeshCheckpoint,
  MeshEventPage,
  MeshEventQuery,
  MeshHash,
  MeshJobQuery,
  MeshPlace,
  MeshSource,
} from "../../../ports/mesh/views.ts";
import type { ControllerView } from "../../../ports/mesh/mesh.ts";
import type { Base } from "./base.ts";
import type { Piece, StoredPage } from "../messages.ts";

/** An event whose bytes are in the piece's own buffer, one after the other. */
export interface PostedEvent {
  readonly arrival: number;
  readonly line: LineId;
  readonly generation: number;
  readonly lineSequence: number;
  /** In the buffer; 0 where there is a hash in its place. */
  readonly length: number;
  readonly hash: string | null;
  readonly receipt: number | null;
  readonly arrivedMs: number;
  readonly checkpoint: { readonly after: number; readonly note: string } | null;
}

export interface MeshPiece extends Piece {
  readonly events: readonly PostedEvent[];
  readonly buffer: Uint8Array<ArrayBuffer>;
}

export type MeshWriterRequest =
  | { readonly kind: "position" }
  | MeshPiece
  | { readonly kind: "mark"; readonly line: LineId; readonly mark: LineMark | null }
  /** Receipts before this one are cut. True: there are more rows of them. */
  | { readonly kind: "forget"; readonly before: number }
  /** Nothing of the file is kept: a copy of the saved state of that file takes its place. */
  | { readonly kind: "adopt"; readonly of: string; readonly base: Base }
  | { readonly kind: "discard"; readonly reason: string }
  | { readonly kind: "close" };

export interface MeshWriterAnswers {
  readonly position: number;
  readonly put: null;
  readonly mark: null;
  readonly forget: boolean;
  readonly adopt: null;
  readonly discard: null;
  readonly close: null;
}

export type MeshReadRequest =
  | { readonly kind: "list"; readonly query: MeshJobQuery }
  | { readonly kind: "agents"; readonly asked: MeshAgentQuery }
  | { readonly kind: "controllers" }
  | { readonly kind: "events"; readonly asked: MeshEventQuery }
  | { readonly kind: "last"; readonly line: LineId }
  | { readonly kind: "receipt"; readonly line: LineId; readonly sequence: number }
  | { readonly kind: "receipt-place"; readonly receipt: number }
  | { readonly kind: "checkpoint"; readonly line: LineId; readonly after: number }
  | { readonly kind: "hash" }
  /** The next step of a count; null: there are more. */
  | { readonly kind: "count"; readonly isFirst: boolean }
  /** Writes what is committed into a file of its own; answers through which arrival that is. */
  | { readonly kind: "copy"; readonly to: string };

/** Jobs are JSON still; what is known of the lines of them all comes once. */
export interface StoredMeshPage extends StoredPage {
  readonly lines: readonly (readonly [LineId, MeshSource])[];
}

export interface StoredHash extends MeshHash {
  readonly marks: readonly (readonly [LineId, LineMark])[];
}

/** With what its rows and jobs give, as they are stored. */
export interface StoredCount extends StoredHash {
  /** Over the same rows as `hash`. */
  readonly counted: string;
  /** Over all jobs that are shown. */
  readonly shown: string;
}

export interface MeshReadAnswers {
  readonly list: StoredMeshPage;
  readonly agents: MeshAgentPage;
  readonly controllers: readonly ControllerView[];
  readonly events: MeshEventPage;
  readonly last: number;
  readonly receipt: number | null;
  readonly "receipt-place": MeshPlace | null;
  readonly checkpoint: MeshCheckpoint | null;
  readonly hash: StoredHash;
  readonly count: StoredCount | null;
  readonly copy: number;
}
