// What can be wrong with a disk besides its bytes: it is slow, hung, full, or refuses the next operation that
// matches. The modes are independent. They belong to the device: a restart of the process does not repair them.
// Invariant: each mode tells its `onHit` the first time that an operation really met it (trap 33).

import type { DiskOperation } from "./disk.ts";
import type { Owner } from "./event-heap.ts";
import type { Scheduler } from "./scheduler.ts";

export type DiskErrorCode = "EIO" | "ENOSPC" | "ENOENT";

/** An error of the world, as the operating system reports it. */
export class DiskError extends Error {
  readonly code: DiskErrorCode;

  constructor(code: DiskErrorCode, detail: string) {
    super(`${code}: ${detail}`);
    this.name = "DiskError";
    this.code = code;
  }
}

/** Matches the next operation with this operation and label; what is left out matches all. */
export interface DiskFailure {
  readonly operation?: DiskOperation | undefined;
  readonly label?: string | undefined;
  readonly code?: DiskErrorCode | undefined;
  readonly onHit?: (() => void) | undefined;
}

type OnHit = () => void;
const nobody: OnHit = () => undefined;

export class DiskFaults {
  readonly #scheduler: Scheduler;
  readonly #owner: Owner;
  #failures: DiskFailure[] = [];
  #slow: { factor: number; onHit: OnHit } | undefined;
  #full: { onHit: OnHit } | undefined;
  #hang: { onHit: OnHit } | undefined;
  #parked: (() => void)[] = [];

  constructor(scheduler: Scheduler, owner: Owner) {
    this.#scheduler = scheduler;
    this.#owner = owner;
  }

  get hung(): boolean {
    return this.#hang !== undefined;
  }

  failNext(failure: DiskFailure): void {
    this.#failures.push(failure);
  }

  /** `factor` 1 is the disk's normal speed. */
  setSlow(factor: number, onHit: OnHit = nobody): void {
    this.#slow = factor === 1 ? undefined : { factor, onHit };
  }

  setFull(full: boolean, onHit: OnHit = nobody): void {
    this.#full = full ? { onHit } : undefined;
  }

  /** Nothing completes for so long, or until `unhang`. A later hang replaces an earlier one. */
  hang(forMs: number | "forever", onHit: OnHit = nobody): void {
    const hang = { onHit };
    this.#hang = hang;
    if (forMs === "forever") return;
    this.#scheduler.schedule(this.#scheduler.nowMs + forMs, this.#owner, () => {
      if (this.#hang === hang) this.unhang();
    });
  }

  /** What waited completes now, in its order, one event each. */
  unhang(): void {
    this.#hang = undefined;
    const parked = this.#parked;
    this.#parked = [];
    for (const complete of parked) this.#scheduler.schedule(this.#scheduler.nowMs, this.#owner, complete);
  }

  mend(): void {
    this.#failures = [];
    this.#slow = undefined;
    this.#full = undefined;
    this.unhang();
  }

  slowFactor(): number {
    if (this.#slow === undefined) return 1;
    this.#slow.onHit();
    return this.#slow.factor;
  }

  /** The error that this operation meets, if any. It uses up an armed failure. */
  meet(operation: DiskOperation, label: string): DiskError | undefined {
    const index = this.#failures.findIndex(
      (failure) => (failure.operation ?? operation) === operation && (failure.label ?? label) === label,
    );
    if (index >= 0) {
      const [failure] = this.#failures.splice(index, 1);
      failure?.onHit?.();
      return new DiskError(failure?.code ?? "EIO", `${operation} (${label}) failed`);
    }
    if (this.#full === undefined || (operation !== "append" && operation !== "reserve")) return undefined;
    this.#full.onHit();
    return new DiskError("ENOSPC", `${operation} (${label}): no space left on device`);
  }

  /** Only while hung. */
  park(complete: () => void): void {
    this.#hang?.onHit();
    this.#parked.push(complete);
  }

  /** The process that waited for completions is dead. */
  forget(): void {
    this.#parked = [];
  }
}
