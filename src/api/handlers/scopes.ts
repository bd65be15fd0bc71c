// Scopes that other processes lead. `acquire` and the watch of one scope may wait; both end when their client goes, and with
// 503 when the server stops.

import { toSnake } from "../../contract/index.ts";
import { SCOPES_PER_PAGE_MAX } from "../../core/kit/limits.ts";
import type { ScopeView } from "../../ports/scopes.ts";
import type { Call, Handlers, Service } from "./handler.ts";
import { beFresh } from "./reads.ts";
import { Refusal, stopping } from "../refusal.ts";

type Ids = "acquire" | "renew" | "resign" | "scopes" | "scope" | "history";

export function scopeHandlers(service: Service): Pick<Handlers, Ids> {
  const { scopes } = service;
  return {
    acquire: (call) => acquire(service, call),
    renew: async ({ params, body }) => ({
      body: toSnake(await scopes.renew(params.scope, body.session, body.epoch)),
    }),
    resign: async ({ params, body }) => {
      await scopes.resign(params.scope, body.session, body.epoch);
      return { body: {} };
    },
    scopes: async ({ query }) => {
      await beFresh(service, query);
      const { after = null, limit = SCOPES_PER_PAGE_MAX } = query;
      const found = scopes.list(after, limit + 1);
      const page = found.slice(0, limit);
      const next = found.length > limit ? (page.at(-1)?.scope ?? null) : null;
      return { body: { scopes: page.map((scope) => toSnake(scope)), next } };
    },
    scope: async (call) => ({ body: toSnake(await watch(service, call)) }),
    history: async ({ params, query }) => {
      await beFresh(service, query);
      if (scopes.get(params.scope) === null) throw unknown(params.scope);
      return { body: { transitions: scopes.history(params.scope).map((one) => toSnake(one)) } };
    },
  };
}

async function acquire(service: Service, call: Call<"acquire">) {
  const { params, body, gone } = call;
  const { session, identity, metadata = {}, ttl_ms: ttlMs, wait_ms: waitMs } = body;
  const poll = service.polls.open(null, gone, call);
  try {
    const request = { scope: params.scope, session, identity, metadata, ttlMs, waitMs };
    const answer = await service.scopes.acquire(request, poll.signal);
    // A grant is reported whatever happens meanwhile: it is in force.
    if (!answer.granted && poll.ended === "stop") throw stopping(service.nodeId);
    if (!answer.granted && poll.ended === "refused") call.admitAgain();
    return { body: toSnake(answer) };
  } finally {
    poll.close();
  }
}

async function watch(service: Service, call: Call<"scope">): Promise<ScopeView> {
  const { params, query, gone } = call;
  await beFresh(service, query);
  const { scopes } = service;
  if (query.wait_ms === undefined || query.wait_ms === 0) return known(params.scope, scopes.get(params.scope));
  const poll = service.polls.open(query.wait_ms, gone, call);
  try {
    const seen = { epoch: query.epoch ?? 0, held: query.held ?? false };
    const view = await scopes.changed(params.scope, seen, poll.signal);
    if (poll.ended === "stop") throw stopping(service.nodeId);
    if (poll.ended === "refused") call.admitAgain();
    // It may have fallen behind while it waited; what was confirmed before is still confirmed.
    await beFresh(service, { max_stale_ms: query.max_stale_ms });
    return known(params.scope, view);
  } finally {
    poll.close();
  }
}

function known(scope: string, view: ScopeView | null): ScopeView {
  if (view === null) throw unknown(scope);
  return view;
}

function unknown(scope: string): Refusal {
  return new Refusal(
    "NOT_FOUND",
    `Nobody has ever led the scope ${JSON.stringify(scope)}, as far as this node knows.`,
    {
      scope,
    },
  );
}
