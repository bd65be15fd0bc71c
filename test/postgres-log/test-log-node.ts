// A node's log on a real server, with a fold that keeps everything it was told.

import { seededRandom } from "../../src/core/kit/random.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { urlDriver } from "../../src/drivers/postgres/index.ts";
import { settingsOf } from "../../src/electors/postgres/index.ts";
import { PostgresDesk } from "../../src/postgres/desk.ts";
import { PostgresLog, type PostgresLogOptions } from "../../src/logs/postgres/index.ts";
import type { Fold, LogHead, LogRecord } from "../../src/ports/log.ts";
import type { SqlDriver } from "../../src/ports/backends/sql.ts";

export class ListFold implements Fold {
  /** `position:epoch:text`, of what was applied since the last restore; the state is the number of all records. */
  applied: string[] = [];
  restored: LogHead[] = [];
  count = 0;

  apply({ position, epoch, data }: LogRecord): void {
    this.applied.push(`${position}:${epoch}:${text(data)}`);
    this.count++;
  }

  snapshot(): Uint8Array {
    return bytes(JSON.stringify({ count: this.count }));
  }

  restore(data: Uint8Array, head: LogHead): void {
    this.count = (JSON.parse(text(data)) as { count: number }).count;
    this.applied = [];
    this.restored.push(head);
  }
}

export interface LogNode {
  readonly log: PostgresLog;
  readonly fold: ListFold;
  readonly warnings: string[];
  readonly fatal: Error[];
}

export interface LogNodeOptions extends Partial<PostgresLogOptions> {
  readonly driver?: SqlDriver | undefined;
}

export function logNode(url: string, name: string, options: LogNodeOptions = {}): LogNode {
  const fold = new ListFold();
  const warnings: string[] = [];
  const fatal: Error[] = [];
  const warn = (fields: Readonly<Record<string, unknown>>, message: string): void =>
    void warnings.push(`${message}: ${String(fields["error"])}`);
  const driver = options.driver ?? urlDriver(url, "tenure");
  const log = new PostgresLog({
    log: "jobs",
    fold,
    desk: new PostgresDesk(driver, systemClock, settingsOf({ url }), "the log"),
    clock: systemClock,
    random: seededRandom(name),
    logger: { info: () => undefined, warn, error: warn },
    schema: "public",
    onFatal: (error) => void fatal.push(error),
    ...options,
  });
  return { log, fold, warnings, fatal };
}

export function bytes(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

export function text(data: Uint8Array): string {
  return new TextDecoder().decode(data);
}
