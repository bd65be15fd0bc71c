// Values as the API shows them, and changes of values as frames of a stream. A change never changes (its name and its version say which it is), so a
// frame is made once for all who watch.

import type { ValueChange, ValueView } from "../../ports/values.ts";
import { VALUE_FRAMES_KEPT_MAX } from "../limits.ts";
import { Kept } from "./event-pages.ts";

export function valueWire({ name, value, version, updatedAtMs, fence }: ValueView) {
  return { name, value, version, updated_at_ms: updatedAtMs, ...fence };
}

export class ValueFrames {
  readonly #encoder = new TextEncoder();
  readonly #frames = new Kept<string, Uint8Array>(VALUE_FRAMES_KEPT_MAX, ({ length }) => length);

  /** `isLast`: of its version. Changes that were made together have one, and whoever was sent some of them goes on before the first. */
  of(change: ValueChange, isLast: boolean): Uint8Array {
    const { kind, name, version } = change;
    const key = `${version} ${isLast} ${name}`;
    const kept = this.#frames.get(key);
    if (kept !== undefined) return kept;
    const data = JSON.stringify({ kind, ...wireOf(change) });
    const frame = this.#encoder.encode(`${isLast ? `id: ${version}\n` : ""}data: ${data}\n\n`);
    this.#frames.set(key, frame);
    return frame;
  }
}

function wireOf(change: ValueChange): object {
  if (change.kind === "put") return valueWire(change);
  const { name, version, updatedAtMs } = change;
  return { name, version, updated_at_ms: updatedAtMs };
}
