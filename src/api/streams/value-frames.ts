// Values as the API shows them, and changes of values as frames of a stream. A change never changes (its version names one content), so a frame is
// made once for all who watch.

import type { ValueChange, ValueView } from "../../ports/values.ts";
import { VALUE_FRAMES_KEPT_MAX } from "../limits.ts";
import { Kept } from "./event-pages.ts";

export function valueWire({ name, value, version, updatedAtMs, fence }: ValueView) {
  return { name, value, version, updated_at_ms: updatedAtMs, ...fence };
}

export class ValueFrames {
  readonly #encoder = new TextEncoder();
  /** By version. */
  readonly #frames = new Kept<number, Uint8Array>(VALUE_FRAMES_KEPT_MAX, ({ length }) => length);

  of(change: ValueChange): Uint8Array {
    const kept = this.#frames.get(change.version);
    if (kept !== undefined) return kept;
    const data = JSON.stringify({ kind: change.kind, ...wireOf(change) });
    const frame = this.#encoder.encode(`id: ${change.version}\ndata: ${data}\n\n`);
    this.#frames.set(change.version, frame);
    return frame;
  }
}

function wireOf(change: ValueChange): object {
  if (change.kind === "put") return valueWire(change);
  const { name, version, updatedAtMs } = change;
  return { name, version, updated_at_ms: updatedAtMs };
}
