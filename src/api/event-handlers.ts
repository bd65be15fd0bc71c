// The log of events, read: as a stream, in pages, checked, and proved. Any node answers, from what is applied there.

import { EVENTS_PER_PAGE_MAX, eventText, toSnake } from "../contract/index.ts";
import type { EventsFilter } from "../ports/events.ts";
import { EventStreams } from "./event-stream.ts";
import type { Call, Handlers, JobsParts, Service, StreamAnswer } from "./handlers.ts";
import { pause } from "./pause.ts";
import { beFresh } from "./reads.ts";
import { Refusal } from "./refusal.ts";

type Ids = "events" | "eventsSince" | "eventsVerify" | "eventsProof";

const PAGE_BYTES_MAX = 1024 * 1024;
const SEQUENCE = /^\d{1,15}$/;

export function eventHandlers(service: Service, parts: JobsParts): Pick<Handlers, Ids> {
  const { events } = parts;
  const streams = new EventStreams(service, events);
  let isVerifying = false;
  return {
    events: async (call) => {
      await beFresh(service, call.query);
      return streams.open(startOf(parts, call), filterOf(call.query), call.isStillAdmitted);
    },
    eventsSince: async ({ params, query }) => {
      await beFresh(service, query);
      const wanted = { filter: null, max: query.limit ?? EVENTS_PER_PAGE_MAX, bytesMax: PAGE_BYTES_MAX };
      const page = await events.read(Number(params.sequence), wanted);
      const texts = page.events.map(({ bytes, eventHash }) => eventText(bytes, eventHash));
      const body = `{"events":[${texts.join(",")}],"throughSequence":${page.through}}`;
      return { body, contentType: "application/json; charset=utf-8" };
    },
    eventsVerify: async ({ query }) => {
      await beFresh(service, query);
      if (isVerifying)
        throw new Refusal("OVERLOADED", "This node verifies its events already. Retry when that is done.");
      isVerifying = true;
      return verification(service, parts, () => {
        isVerifying = false;
      });
    },
    eventsProof: async ({ query }) => {
      await beFresh(service, query);
      return { body: await proof(parts, query) };
    },
  };
}

/** The header wins: a browser that reconnects sends it beside the query that it began with. */
function startOf({ events }: JobsParts, { header, query }: Call<"events">): number {
  const last = header("last-event-id");
  if (last === undefined) return query.since ?? events.head().sequence;
  if (SEQUENCE.test(last)) return Number(last);
  throw new Refusal("BAD_REQUEST", "Last-Event-ID must be the sequence of an event.", { field: "Last-Event-ID" });
}

function filterOf({ type, entity, entity_type: entityType }: Call<"events">["query"]): EventsFilter | null {
  if (type === undefined && entity === undefined && entityType === undefined) return null;
  return { types: type?.split(",") ?? null, entityId: entity ?? null, entityType: entityType ?? null };
}

/** May take minutes: a space now and then, which means nothing in JSON, keeps the connection and finds out who has gone. */
function verification(service: Service, { events }: JobsParts, done: () => void): StreamAnswer {
  const { clock, limits } = service;
  return {
    contentType: "application/json; charset=utf-8",
    abandoned: done,
    stream: async (out) => {
      const ended = new AbortController();
      try {
        const verdict = events.verify(() => undefined, out.signal);
        const beat = async (): Promise<void> => {
          while (await pause(clock, limits.heartbeatMs, ended.signal)) await out.write(" ");
        };
        // Where the client has gone the verification ends by its signal.
        const beating = beat().catch(() => undefined);
        const found = await verdict.finally(() => ended.abort("done"));
        await beating;
        const { first: firstSequence, ...rest } = found;
        if (!rest.valid) return await out.write(JSON.stringify({ ...rest, firstSequence }));
        const { through: throughSequence, ...others } = rest;
        await out.write(JSON.stringify({ ...others, firstSequence, throughSequence }));
      } finally {
        done();
      }
    },
  };
}

async function proof({ events }: JobsParts, query: Call<"eventsProof">["query"]): Promise<object> {
  const { sequence, from_size: fromSize, tree_size: treeSize = events.head().sequence } = query;
  if ((sequence === undefined) === (fromSize === undefined)) {
    throw new Refusal(
      "BAD_REQUEST",
      "Give sequence (is it in the log?) or from_size (did the log only grow?), one of them.",
      {
        field: sequence === undefined ? "sequence" : "from_size",
      },
    );
  }
  const least = sequence ?? fromSize ?? 0;
  const { sequence: head } = events.head();
  if (treeSize > head || least > treeSize) {
    const [field, value] =
      treeSize > head ? ["tree_size", head] : [sequence === undefined ? "from_size" : "sequence", treeSize];
    throw new Refusal("BAD_REQUEST", `${field} must be at most ${value} here.`, { field });
  }
  if (sequence !== undefined) return { kind: "inclusion", ...toSnake(await events.inclusion(sequence, treeSize)) };
  return { kind: "consistency", ...toSnake(await events.consistency(least, treeSize)) };
}
