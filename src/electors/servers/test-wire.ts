// Servers for unit tests that say what they are told to: an answer for each path, a log of what was asked, and a clock that
// the test moves. Three healthy nodes, n1 leads in term 5, and whoever asks for the scope gets epoch 42.

import { TenureError } from "../../core/kit/errors.ts";
import { seededRandom } from "../../core/kit/random.ts";
import type { LossReason } from "../../ports/backends/backend.ts";
import type { ServersAnswer, ServersQuestion, ServersWire } from "../../ports/backends/servers.ts";
import { HandClock } from "../../loops/test-clock.ts";
import { claimOn } from "../test-seat.ts";
import { serversBackend } from "./index.ts";
import { LeaderClient } from "./leader-client.ts";
import { Members } from "./members.ts";
import { type ServersOptions, serversSettings } from "./options.ts";
import type { ServersSeat } from "./seat.ts";
import { ServersValuesReader } from "./values.ts";

const URLS = ["https://n1", "https://n2", "https://n3"] as const;
/** Never answered, until its signal aborts. */
export const SILENCE = Symbol("silence");

export type Said = ServersAnswer | Error | typeof SILENCE;
export type Say = (question: ServersQuestion) => Said | Promise<Said>;

export function ok(body: object): ServersAnswer {
  return { status: 200, body: body as ServersAnswer["body"], clusterId: null };
}

export function refusal(status: number, error: string, fields: object = {}): ServersAnswer {
  return { status, body: { error, message: "of the test", ...fields }, clusterId: null };
}

export function unreachable(isUnsent: boolean): Error {
  return Object.assign(new TenureError("BACKEND_UNAVAILABLE", "the connection was cut."), { unsent: isUnsent });
}

export class TestServers implements ServersWire {
  readonly clock = new HandClock();
  /** `n1 POST acquire`, in order. */
  readonly asked: string[] = [];
  readonly questions: ServersQuestion[] = [];
  leaderId: string | null = "n1";
  term = 5;
  clusterId = "c1";
  /** By what `asked` says of it, or by its end alone (`acquire`). */
  says: Record<string, Say> = {
    acquire: () => ok({ granted: true, epoch: 42, ttl_ms: 6_000 }),
    renew: () => ok({ epoch: 42, ttl_ms: 6_000, resign_requested: false }),
    resign: () => ok({}),
    scope: () => SILENCE,
  };

  async ask(url: string, question: ServersQuestion): Promise<ServersAnswer> {
    const node = new URL(url).host;
    const what = whatOf(question.path);
    const name = `${node} ${question.method} ${what}`;
    this.asked.push(name);
    this.questions.push(question);
    const say = this.says[name] ?? this.says[`${node} *`] ?? this.says[what] ?? (() => this.#default(node, what));
    const said = await say(question);
    if (said === SILENCE) return await this.#silence(question);
    if (said instanceof Error) throw said;
    return said;
  }

  close(): void {}

  /** The mutations that were asked for, without the rest. */
  get posts(): string[] {
    return this.asked.filter((one) => one.includes("POST"));
  }

  #default(node: string, what: string): Said {
    const { leaderId, term } = this;
    if (what === "cluster") {
      const leader = leaderId === null ? null : { node_id: leaderId, address: null, url: `https://${leaderId}` };
      return ok({ cluster_id: this.clusterId, node_id: node, term, leader, members: [] });
    }
    if (what !== "leader") throw new Error(`nobody said what ${node} answers to ${what}`);
    if (leaderId === null) return refusal(503, "ERR_NO_LEADER");
    return ok({ leader_id: leaderId, leader_address: null, leader_url: null, term, node_id: node });
  }

  #silence({ signal, timeoutMs }: ServersQuestion): Promise<never> {
    return new Promise((_, reject) => {
      this.clock.setTimer(this.clock.now.monotonicMs + timeoutMs, () => reject(unreachable(false)));
      signal.addEventListener("abort", () => reject(unreachable(false)), { once: true });
    });
  }
}

function whatOf(path: string): string {
  const bare = path.split("?")[0] ?? "";
  if (bare.startsWith("/v1/admin")) return "admin-resign";
  if (bare.startsWith("/v1/values/")) return "value";
  if (bare === "/v1/values") return "values";
  if (bare === "/v1/watch/values") return "watch";
  const last = bare.split("/").at(-1) ?? "";
  return ["acquire", "renew", "resign", "history", "cluster", "leader"].includes(last) ? last : "scope";
}

export function leaderClient(servers: TestServers): LeaderClient {
  const members = new Members(URLS, true);
  const limits = { requestTimeoutMs: 1_000, budgetMs: 2_000 };
  return new LeaderClient({ wire: servers, members, clock: servers.clock, random: seededRandom(1), ...limits });
}

export interface Sat {
  readonly seat: ServersSeat;
  readonly losses: [number, LossReason][];
}

export function sit(servers: TestServers, options: ServersOptions = {}, scope = "s"): Sat {
  const { clock } = servers;
  const random = seededRandom(1);
  let sessions = 0;
  const newSession = (): string => `session-${++sessions}`;
  const backend = serversBackend(serversSettings(URLS, options), {
    host: "h",
    clock,
    random,
    newSession,
    connect: () => servers,
  });
  const { claim, losses } = claimOn(clock, scope);
  return { seat: backend.seat(claim) as ServersSeat, losses };
}

/** Of `servers(url).values()`, on the test's clock. */
export function valuesOf(servers: TestServers): ServersValuesReader {
  const client = leaderClient(servers);
  return new ServersValuesReader({ client, clock: servers.clock, random: seededRandom(1) });
}
