// A network of made-up nodes for the client's tests: what each address answers, and who was sent what.

import type { ClientFetch } from "./exchange.ts";

export interface Sent {
  readonly url: string;
  readonly path: string;
  readonly method: string;
  readonly key: string | undefined;
  readonly idempotencyKey: string | undefined;
  readonly lastEventId: string | undefined;
  readonly eventPoint: string | undefined;
  readonly redirect: string | undefined;
  readonly body: unknown;
}

/** `[status, body]`; or an Error to throw, as a broken connection does; or "never". */
export type Reply = readonly [number, unknown] | Error | "never";
export type Node = (path: string, sent: Sent) => Reply | Promise<Reply>;

export class Network {
  readonly sent: Sent[] = [];
  readonly nodes = new Map<string, Node>();

  readonly fetch: ClientFetch = async (text, init) => {
    const url = new URL(text);
    const headers = init.headers as Record<string, string>;
    const sent: Sent = {
      url: url.origin,
      path: `${url.pathname}${url.search}`,
      method: init.method ?? "GET",
      key: headers["x-api-key"],
      idempotencyKey: headers["idempotency-key"],
      lastEventId: headers["last-event-id"],
      eventPoint: headers["x-tenure-event-point"],
      redirect: init.redirect,
      body: typeof init.body === "string" ? (JSON.parse(init.body) as unknown) : undefined,
    };
    this.sent.push(sent);
    const node = this.nodes.get(url.origin);
    if (node === undefined) throw failed("ECONNREFUSED");
    const reply = await Promise.race([node(sent.path, sent), untilAborted(init.signal)]);
    if (reply instanceof Response) return reply;
    if (reply === "never") return await untilAborted(init.signal);
    if (reply instanceof Error) throw reply;
    const [status, body] = reply;
    return new Response(typeof body === "string" ? body : JSON.stringify(body), { status });
  };

  to(path: string): readonly Sent[] {
    return this.sent.filter((one) => one.path === path);
  }
}

/** As the platform's fetch fails. */
export function failed(code: string): Error {
  return new TypeError("fetch failed", { cause: Object.assign(new Error(`connect ${code}`), { code }) });
}

export function leaderAnswer(nodeId: string, leaderId: string, leaderUrl: string | null, term: number): Reply {
  return [200, { node_id: nodeId, leader_id: leaderId, leader_url: leaderUrl, leader_address: null, term }];
}

export function notLeader(leaderUrl: string | null): Reply {
  return [409, { error: "NOT_LEADER", message: "n2 leads", leader_id: "n2", leader_url: leaderUrl, role: "STANDBY" }];
}

function untilAborted(signal: AbortSignal | null | undefined): Promise<Response> {
  return new Promise((_resolve, reject) => {
    if (signal?.aborted === true) reject(signal.reason as Error);
    signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}
