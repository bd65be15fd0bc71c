// A desk whose server is a few lines of the test: it keeps one head as the real functions do, and answers when it is told to.

import { TenureError } from "../../core/kit/errors.ts";
import type { SqlDesk, SqlLane } from "../../ports/backends/sql.ts";

export interface Sent {
  readonly values: readonly unknown[];
  /** As the server would, by its head. */
  answer(): Promise<void>;
  reject(error: unknown): Promise<void>;
}

export class TestDesk implements SqlDesk {
  readonly where = "test:5432/db";
  /** Appends that were sent and not answered. */
  readonly sent: Sent[] = [];
  readonly lanes: TestLane[] = [];
  refuse: TenureError | null = null;
  epoch = 0;
  opened = 0;
  position = 0;

  async connect(): Promise<SqlLane> {
    if (this.refuse !== null) throw this.refuse;
    const lane = new TestLane(this);
    this.lanes.push(lane);
    return lane;
  }

  fault(error: unknown): TenureError {
    return TenureError.is(error) ? error : new TenureError("BACKEND_UNAVAILABLE", String(error), { cause: error });
  }

  close(): void {
    // Nothing is ever being opened.
  }

  open(epoch: number): unknown {
    const taken = epoch >= this.epoch;
    if (taken) {
      this.epoch = epoch;
      this.opened++;
    }
    return this.#verdict(taken);
  }

  append(values: readonly unknown[]): unknown {
    const [, epoch, opened, after, , lengths] = values as [string, number, number, number, Uint8Array, number[]];
    const taken = epoch === this.epoch && opened === this.opened && after === this.position;
    if (taken) this.position += lengths.length;
    return this.#verdict(taken);
  }

  /** The head, and no record: nothing is kept here. */
  page(): unknown {
    const head = { epoch: String(this.epoch), position: String(this.position), first: "1" };
    return { ...head, snapshot_position: "0", snapshot_epoch: "0", before_epoch: null, at: null };
  }

  #verdict(taken: boolean): unknown {
    const { epoch, opened, position } = this;
    return { taken, epoch: String(epoch), opened: String(opened), position: String(position) };
  }
}

class TestLane implements SqlLane {
  hasEnded = false;
  /** What was answered last is the last answer of this session. */
  isLast = false;
  readonly #desk: TestDesk;

  constructor(desk: TestDesk) {
    this.#desk = desk;
  }

  ask<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    const desk = this.#desk;
    if (text.includes("tenure_log_open")) return Promise.resolve([desk.open(values[1] as number) as Row]);
    if (text.includes("left join lateral")) return Promise.resolve([desk.page() as Row]);
    if (text === "select 1") return this.isLast ? Promise.reject(new Error("closed")) : Promise.resolve([]);
    return new Promise((resolve, reject) => {
      desk.sent.push({
        values,
        answer: () => settled(() => resolve([desk.append(values) as Row])),
        reject: (error) => settled(() => reject(error)),
      });
    });
  }

  end(): Promise<void> {
    this.hasEnded = true;
    return Promise.resolve();
  }

  destroy(): void {
    this.hasEnded = true;
  }
}

/** Does it, and lets everything happen that follows from it. */
export async function settled(act: () => void = () => undefined): Promise<void> {
  act();
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}
