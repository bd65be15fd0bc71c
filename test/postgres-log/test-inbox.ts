// An inbox on a real server.

import { seededRandom } from "../../src/core/kit/random.ts";
import { urlDriver } from "../../src/drivers/postgres/index.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { settingsOf } from "../../src/electors/postgres/index.ts";
import { PostgresDesk } from "../../src/postgres/desk.ts";
import { PostgresInbox, type PostgresInboxOptions } from "../../src/logs/postgres/index.ts";
import type { SqlDesk, SqlLane } from "../../src/ports/backends/sql.ts";

export function inboxOf(url: string, options: Partial<PostgresInboxOptions> = {}): PostgresInbox {
  return new PostgresInbox({
    desk: inboxDesk(url),
    clock: systemClock,
    random: seededRandom("inbox"),
    logger: { info: () => undefined, warn: () => undefined, error: () => undefined },
    schema: "public",
    log: "jobs",
    ...options,
  });
}

function inboxDesk(url: string): PostgresDesk {
  return new PostgresDesk(urlDriver(url, "tenure"), systemClock, settingsOf({ url }), "the inbox");
}

export interface Look {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** A desk that remembers what was looked for. */
export function watchedDesk(url: string): { readonly desk: SqlDesk; readonly looks: Look[] } {
  const inner = inboxDesk(url);
  const looks: Look[] = [];
  const watched = (lane: SqlLane): SqlLane => ({
    get hasEnded() {
      return lane.hasEnded;
    },
    ask: (text, values = [], limitMs) => {
      if (text.startsWith("select")) looks.push({ text, values });
      return lane.ask(text, values, limitMs);
    },
    end: () => lane.end(),
    destroy: () => lane.destroy(),
  });
  const desk: SqlDesk = {
    where: inner.where,
    connect: async (name, events) => watched(await inner.connect(name, events)),
    fault: (error) => inner.fault(error),
    close: () => inner.close(),
  };
  return { desk, looks };
}
