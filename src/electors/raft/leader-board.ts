// Who leads, as the cluster remembers it: a state machine around another one, with one notice on it. A new leader writes its
// identity there before it acts, so that every node can tell who leads, not only from which node.
//
// Entries carry one byte in front: a notice, or something of the machine inside. The notice travels in snapshots.
// Invariant: a notice of a lower term never replaces one of a higher term, whatever order they were proposed in.

import { ByteReader, ByteWriter, DecodeError, tagged } from "../../core/kit/bytes.ts";
import { parseJson } from "../../core/kit/parse-json.ts";
import { wholeOf } from "../../core/kit/pieces.ts";
import type { ProposeOutcome, Proposals } from "../../ports/consensus.ts";
import type { StateMachine } from "../../ports/state-machine.ts";

const NOTICE_TAG = 0;
const INNER_TAG = 1;
const VERSION = 1;
const TEXT_BYTES_MAX = 64 * 1024;

export interface Notice {
  readonly term: number;
  readonly identity: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** The leader has let go, and nobody has followed yet. */
  readonly isResigned: boolean;
}

export class LeaderBoard implements StateMachine {
  readonly #inner: StateMachine;
  readonly #listeners = new Set<() => void>();
  #notice: Notice | null = null;

  constructor(inner: StateMachine) {
    this.#inner = inner;
  }

  /** The last one that was applied here. */
  get notice(): Notice | null {
    return this.#notice;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  announce(proposals: Proposals, notice: Notice): Promise<ProposeOutcome> {
    return proposals.propose([encodeNotice(notice)]);
  }

  /** For whoever proposes to the machine inside. */
  forInner(proposals: Proposals): Proposals {
    return { propose: (data) => proposals.propose(data.map((one) => tagged(one, INNER_TAG))) };
  }

  apply(entry: { readonly index: number; readonly term: number; readonly data: Uint8Array }): unknown {
    if (entry.data[0] === INNER_TAG) return this.#inner.apply({ ...entry, data: entry.data.subarray(1) });
    const notice = decodeNotice(entry.data);
    if (notice !== null && notice.term >= (this.#notice?.term ?? 0)) this.#replace(notice);
    return undefined;
  }

  async snapshot(): Promise<Uint8Array> {
    const notice = this.#notice === null ? new Uint8Array(0) : encodeNotice(this.#notice);
    // Taken in this turn, before the first await: the state as of the last applied entry.
    const captured = this.#inner.snapshot();
    const writer = new ByteWriter();
    writer.u8(VERSION);
    writer.bytes(notice);
    writer.bytes(wholeOf(await captured));
    return writer.finish();
  }

  restore(data: Uint8Array): void {
    // A founder's snapshot is empty.
    if (data.length === 0) return this.#inner.restore(data);
    const reader = new ByteReader(data);
    const version = reader.u8();
    if (version !== VERSION) throw new DecodeError("malformed", `a leader board of version ${version}`);
    const notice = reader.bytes(TEXT_BYTES_MAX);
    this.#inner.restore(reader.bytes(data.length));
    this.#replace(notice.length === 0 ? null : decodeNotice(notice));
  }

  #replace(notice: Notice | null): void {
    this.#notice = notice;
    for (const listener of this.#listeners) listener();
  }
}

function encodeNotice(notice: Notice): Uint8Array {
  const writer = new ByteWriter();
  writer.u8(NOTICE_TAG);
  writer.u8(VERSION);
  writer.uint53(notice.term);
  writer.bool(notice.isResigned);
  writer.text(notice.identity);
  writer.text(JSON.stringify(notice.metadata));
  return writer.finish();
}

/** Null for what is no notice: every node ignores it alike. */
function decodeNotice(data: Uint8Array): Notice | null {
  try {
    const reader = new ByteReader(data);
    if (reader.u8() !== NOTICE_TAG || reader.u8() !== VERSION) return null;
    const term = reader.uint53();
    const isResigned = reader.bool();
    const identity = reader.text(TEXT_BYTES_MAX);
    const metadata = parseJson(reader.text(TEXT_BYTES_MAX)) as Record<string, string>;
    return { term, isResigned, identity, metadata };
  } catch (error) {
    if (error instanceof DecodeError || error instanceof SyntaxError) return null;
    throw error;
  }
}
