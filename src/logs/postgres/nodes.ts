// The nodes of a site on Postgres: this one is known there while it lives, and it knows the others.
//
//   created ──join──▶ claiming its name ──▶ known: one beat a second ──▶ left
//                          ▲                       │ the session is lost
//                          └─────── backoff ◀──────┘     for ever; a name that another process has taken ends it
//
// The claim is an advisory lock of the session: the server releases it at once when the process dies, and after
// NODE_SESSION_IDLE_MS of silence when it is frozen. So a node that is started again need not wait, and two processes with one
// node id are noticed.
// Nothing is decided by what is here: who leads is the elector's to say, what counts the log's.

import { assert } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { CLOCK_HEARD_MS_MAX, CLOCK_SKEW_MS_MAX, MEMBERS_MAX } from "../../core/kit/limits.ts";
import { Bell } from "../../loops/bell.ts";
import { retryInMs } from "../../loops/time.ts";
import type { SqlLane } from "../../ports/backends/sql.ts";
import { connected, type SqlTools } from "../../postgres/desk.ts";
import { quoteSchema } from "../../postgres/schema/schema.ts";
import * as limits from "../limits.ts";
import { integerOf } from "./log-sql.ts";
import { OutageLog } from "./outage-log.ts";

export interface PostgresNodesOptions extends SqlTools {
  readonly log: string;
  readonly schema: string;
  readonly nodeId: string;
  /** Of this process. */
  readonly instance: string;
  /** Where its API is. */
  readonly url: string;
  readonly version: string;
  /** The key of the lock that stands for the node id, as text. */
  readonly nameKey: string;
  readonly applied: () => number;
  /** Another process has this node's name. */
  readonly onFatal: (error: TenureError) => void;
}

export interface SiteNode {
  readonly nodeId: string;
  readonly instance: string;
  readonly url: string;
  readonly version: string;
  readonly applied: number;
  /** Since its last beat, by the database's clock, when this node read it. */
  readonly silentMs: number;
}

interface NodeRow {
  readonly node: string;
  readonly instance: string;
  readonly url: string;
  readonly version: string;
  readonly applied: string;
  readonly silent_ms: string;
  readonly now_ms: string;
}

export class PostgresNodes {
  readonly #options: PostgresNodesOptions;
  readonly #sql: ReturnType<typeof statements>;
  readonly #outages: OutageLog;
  #lane: SqlLane | null = null;
  #nodes: readonly SiteNode[] = [];
  #heardMs: number | null = null;
  /** The database's clock, less the monotonic one here, when it was last read. */
  #database: { readonly offsetMs: number; readonly atMs: number } | null = null;
  /** Other nodes with this one's URL. */
  #twins: readonly string[] = [];
  #site: string | null = null;
  #joined: Promise<string> | undefined;
  #isClosed = false;
  readonly #bell: Bell;

  constructor(options: PostgresNodesOptions) {
    this.#options = options;
    this.#sql = statements(options.schema);
    const { clock, logger } = options;
    const texts = {
      out: "this node is not known in the database; it is tried again",
      well: "this node is known in the database again",
    };
    this.#bell = new Bell(clock);
    this.#outages = new OutageLog({ clock, logger, fields: { event: "nodes" }, texts });
  }

  /** As they were at `heardMs`; the one that was heard last comes first. */
  get all(): readonly SiteNode[] {
    return this.#nodes;
  }

  /** When the last beat was sent that was answered, on the monotonic clock; null: never. */
  get heardMs(): number | null {
    return this.#heardMs;
  }

  /**
   * The time of day: the database's, which is one for all nodes of the site; as this node's own clock shows it where that
   * agrees. Null: it was not read for a while.
   */
  believedMs(): number | null {
    const { clock } = this.#options;
    const nowMs = clock.monotonicMs();
    if (this.#database === null || nowMs - this.#database.atMs > CLOCK_HEARD_MS_MAX) return null;
    const [databaseMs, wallMs] = [this.#database.offsetMs + nowMs, clock.wallMs()];
    return Math.abs(wallMs - databaseMs) <= CLOCK_SKEW_MS_MAX ? wallMs : databaseMs;
  }

  /** How far this node's clock is ahead of the database's; null: that was never read. */
  get clockSkewMs(): number | null {
    const { clock } = this.#options;
    return this.#database === null ? null : clock.wallMs() - clock.monotonicMs() - this.#database.offsetMs;
  }

  /** Waits for a database that can't be reached. Resolves to the site's id; rejects with what a person must repair. */
  join(): Promise<string> {
    this.#joined ??= new Promise((resolve, reject) => void this.#run(resolve, reject));
    return this.#joined;
  }

  /** The others need not wait to know that it is gone. Never rejects. */
  async leave(): Promise<void> {
    this.#isClosed = true;
    const { desk, log, nodeId, instance } = this.#options;
    desk.close();
    this.#bell.ring();
    const lane = this.#lane;
    this.#lane = null;
    try {
      if (lane?.hasEnded === false)
        await lane.ask(this.#sql.leave, [log, nodeId, instance], limits.SESSION_RETRY_MS_MAX);
    } catch {
      // They will see that it is silent.
    }
    await lane?.end();
  }

  async #run(joined: (site: string) => void, refused: (error: TenureError) => void): Promise<void> {
    const { desk, random, onFatal } = this.#options;
    let failures = 0;
    while (!this.#isClosed) {
      try {
        await this.#beat(this.#lane?.hasEnded === false ? this.#lane : await this.#claim());
        failures = 0;
        this.#outages.works();
        assert(this.#site !== null, "a site is known before its nodes are");
        joined(this.#site);
        await this.#bell.waitFor(limits.NODE_BEAT_MS);
      } catch (error) {
        if (this.#isClosed) break;
        this.#lane?.destroy();
        this.#lane = null;
        const fault = desk.fault(error);
        if (!fault.retryable && (this.#heardMs === null || fault instanceof Displaced)) {
          this.#isClosed = true;
          if (this.#heardMs !== null) onFatal(fault);
          return refused(fault);
        }
        this.#outages.failed(fault);
        await this.#bell.waitFor(
          retryInMs(random, ++failures, limits.SESSION_RETRY_MS_MIN, limits.SESSION_RETRY_MS_MAX),
        );
      }
    }
    refused(new TenureError("BACKEND_UNAVAILABLE", "the node was stopped before it was known in the database."));
  }

  async #claim(): Promise<SqlLane> {
    const { desk, clock, nameKey, nodeId, log } = this.#options;
    return connected(desk, `tenure node ${nodeId}`, {}, async (lane) => {
      await lane.ask("select set_config('idle_session_timeout', $1::text, false)", [
        String(limits.NODE_SESSION_IDLE_MS),
      ]);
      const [row] = await lane.ask<{ site: string }>(this.#sql.site, [log]);
      const site = row?.site ?? "";
      if (this.#site !== null && this.#site !== site) throw anotherSite(this.#site, site);
      this.#site = site;
      const untilMs = clock.monotonicMs() + limits.NODE_CLAIM_MS_MAX;
      for (;;) {
        const [answer] = await lane.ask<{ granted: boolean }>(this.#sql.claim, [nameKey]);
        if (this.#isClosed) throw new Error("the node was stopped");
        if (answer?.granted === true) break;
        if (clock.monotonicMs() >= untilMs) throw await this.#taken(lane);
      }
      // In the same turn: from here on `leave` ends it.
      this.#lane = lane;
    });
  }

  async #taken(lane: SqlLane): Promise<TenureError> {
    const { nodeId } = this.#options;
    const other = (await this.#read(lane)).find((node) => node.nodeId === nodeId);
    const where = other === undefined ? "" : ` at ${other.url}`;
    return new Displaced(
      `another process runs as node ${nodeId}${where}, with the same database. Two nodes must not have one id: correct node_id, or end the other.`,
    );
  }

  async #beat(lane: SqlLane): Promise<void> {
    const { log, nodeId, instance, url, version, applied, clock } = this.#options;
    const sentMs = clock.monotonicMs();
    await lane.ask(this.#sql.beat, [log, nodeId, instance, url, version, applied()]);
    this.#nodes = await this.#read(lane);
    this.#heardMs = sentMs;
    this.#lookForTwins();
  }

  /** Reported once for each, when it is first seen. */
  #lookForTwins(): void {
    const { nodeId, url, logger } = this.#options;
    const isTwin = (node: SiteNode): boolean =>
      node.url === url && node.nodeId !== nodeId && node.silentMs <= limits.TWIN_SILENT_MS_MAX;
    const twins = this.#nodes.filter(isTwin).map((node) => node.nodeId);
    for (const twin of twins.filter((one) => !this.#twins.includes(one))) {
      const text = "another node has this node's API URL: clients that are sent to one may come to the other";
      logger.warn({ event: "url-shared", url, other: twin }, `${text}. Give each its own (api.advertise)`);
    }
    this.#twins = twins;
  }

  async #read(lane: SqlLane): Promise<readonly SiteNode[]> {
    const rows = await lane.ask<NodeRow>(this.#sql.nodes, [this.#options.log, MEMBERS_MAX]);
    const [first] = rows;
    const atMs = this.#options.clock.monotonicMs();
    if (first !== undefined) this.#database = { offsetMs: Number(first.now_ms) - atMs, atMs };
    return rows.map(({ node, instance, url, version, applied, silent_ms: silentMs }) => ({
      nodeId: node,
      instance,
      url,
      version,
      applied: integerOf(applied),
      silentMs: Math.max(0, Number(silentMs)),
    }));
  }
}

function statements(schema: string) {
  const at = quoteSchema(schema);
  return {
    /** log → `site`. */
    site: `select ${at}.tenure_site($1::text)::text as site`,
    /** lock key → `granted`: false after the session's lock_timeout. */
    claim: `select ${at}.tenure_wait($1::bigint) as granted`,
    /** log, node, instance, url, version, applied. */
    beat: `select ${at}.tenure_node_beat($1::text, $2::text, $3::text, $4::text, $5::text, $6::bigint)`,
    /** log, node, instance. */
    leave: `select ${at}.tenure_node_leave($1::text, $2::text, $3::text)`,
    /** log, at most. */
    nodes: `select n.node, n.instance, n.url, n.version, n.applied::text as applied,
  round(extract(epoch from clock_timestamp() - n.last_seen) * 1000)::text as silent_ms,
  round(extract(epoch from clock_timestamp()) * 1000)::text as now_ms
from ${at}.tenure_node n where n.log = $1::text order by n.last_seen desc limit $2::integer`,
  } as const;
}

/** There is no place for this node any more: waiting repairs nothing. */
class Displaced extends TenureError {
  constructor(message: string) {
    super("CONFIG_INVALID", message);
  }
}

function anotherSite(known: string, found: string): TenureError {
  return new Displaced(
    `the database holds site ${found} now, and this node belongs to ${known}: another database answers at its URL. Point it at the right one, or start the node anew.`,
  );
}
