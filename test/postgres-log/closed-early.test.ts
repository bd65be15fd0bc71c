// Whoever is closed while its session is being prepared leaves no session, and nothing that the session would have written.

import { expect, test } from "vitest";
import { seededRandom } from "../../src/core/kit/random.ts";
import { urlDriver } from "../../src/drivers/postgres/index.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { settingsOf } from "../../src/electors/postgres/index.ts";
import { PostgresNodes } from "../../src/logs/postgres/index.ts";
import type { SqlDriver } from "../../src/ports/backends/sql.ts";
import { PostgresDesk } from "../../src/postgres/desk.ts";
import { connectTo } from "../postgres/test-seat.ts";
import { one } from "../postgres/test-sql.ts";
import { waitFor } from "../servers/index.ts";
import { inboxOf } from "./test-inbox.ts";
import { logNode } from "./test-log-node.ts";
import { useLogServer } from "./test-log-server.ts";

const { freshDatabase, started } = useLogServer("early");

interface HeldDriver extends SqlDriver {
  /** Resolves when a statement with these words is about to be sent; it is sent after `release`. */
  readonly held: Promise<void>;
  readonly release: () => void;
}

function heldDriver(url: string, words: string): HeldDriver {
  const inner = urlDriver(url, "tenure");
  const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  return {
    where: inner.where,
    held: held.promise,
    release: released.resolve,
    open: (events) => {
      const session = inner.open(events);
      return {
        ready: session.ready,
        query: async (text, values) => {
          if (text.includes(words)) {
            held.resolve();
            await released.promise;
          }
          return session.query(text, values);
        },
        end: () => session.end(),
        destroy: () => session.destroy(),
      };
    },
  };
}

/** A database with the tables, and nobody connected. */
async function emptySite(): Promise<string> {
  const { url } = await freshDatabase();
  const { log } = await started(url, "first");
  await log.close();
  return url;
}

async function nobodyIsLeft(url: string): Promise<void> {
  const user = await connectTo(url);
  const sessions = `select count(*)::int from pg_stat_activity
    where datname = current_database() and application_name like 'tenure%'`;
  await waitFor("no session is left", async () => (await one(user, sessions)) === 0);
  await user.end();
}

function deskOf(url: string, driver: SqlDriver): PostgresDesk {
  return new PostgresDesk(driver, systemClock, settingsOf({ url }), "the test");
}

test("a log", async () => {
  const url = await emptySite();
  const driver = heldDriver(url, "listen");
  const { log } = logNode(url, "closed", { driver });
  const start = expect(log.start()).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
  await driver.held;
  await log.close();
  driver.release();
  await start;
  await nobodyIsLeft(url);
});

test("an inbox", async () => {
  const url = await emptySite();
  const driver = heldDriver(url, "listen");
  const inbox = inboxOf(url, { desk: deskOf(url, driver) });
  const next = expect(inbox.next(1)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
  await driver.held;
  await inbox.close();
  driver.release();
  await next;
  await nobodyIsLeft(url);
});

test("a node: nor is it known in the database afterwards", async () => {
  const url = await emptySite();
  const driver = heldDriver(url, "tenure_wait");
  const nodes = new PostgresNodes({
    log: "jobs",
    desk: deskOf(url, driver),
    clock: systemClock,
    random: seededRandom("nodes"),
    logger: { info: () => undefined, warn: () => undefined, error: () => undefined },
    schema: "public",
    nodeId: "n1",
    instance: "i1",
    url: "http://127.0.0.1:1",
    version: "0.0.0",
    nameKey: "7",
    applied: () => 0,
    onFatal: () => undefined,
  });
  const join = expect(nodes.join()).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
  await driver.held;
  await nodes.leave();
  driver.release();
  await join;
  await nobodyIsLeft(url);
  const user = await connectTo(url);
  expect(await one(user, "select count(*)::int from tenure_node")).toBe(0);
  await user.end();
});
