// The log of events, read: as a stream, in pages, checked, and proved. Any node answers, from what is applied there.

import { arrivalText, errorBody, EVENTS_PER_PAGE_MAX, eventText, toSnake } from "../../contract/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { Arrivals, ArrivalsVerified } from "../../ports/mesh/arrivals.ts";
import type { EventsFilter, Verified } from "../../ports/events.ts";
import type { MeshLines } from "../../ports/mesh/lines.ts";
import { EVENTS_PAGE_BYTES_MAX } from "../limits.ts";
import { eventStart } from "../streams/event-point.ts";
import { EventStreams } from "../streams/event-stream.ts";
import type { Answer, Call, Handlers, JobsParts, Service, StreamAnswer } from "./handler.ts";
import { standalone } from "./mesh-lines.ts";
import { pause } from "../../loops/time.ts";
import { beFresh } from "./reads.ts";
import { Refusal, stopping } from "../refusal.ts";
import type { Outlet } from "../streams/stream.ts";

type Ids = "events" | "eventsSince" | "eventsVerify" | "eventsProof";

/** `lines`: undefined where this site is standalone. */
export function eventHandlers(service: Service, parts: JobsParts, lines?: MeshLines): Pick<Handlers, Ids> {
  const { events } = parts;
  const streams = new EventStreams(service, events);
  let isVerifying = false;
  return {
    events: async (call) => {
      await beFresh(service, call.query);
      return streams.open(() => eventStart(service, parts, call), {
        filter: filterOf(call.query),
        isChained: call.query.ids === "chained",
        isStillAdmitted: call.isStillAdmitted,
        takeStream: call.takeStream,
      });
    },
    eventsSince: async (call) => {
      const { params, query, inTurn } = call;
      // Before its turn: who waits for a leader takes none.
      await beFresh(service, query);
      const after = Number(params.sequence);
      const arrivals = query.line === undefined ? service.arrivals?.() : undefined;
      if (arrivals !== undefined) return arrived(arrivals, after, call);
      const wanted = { filter: null, max: query.limit ?? EVENTS_PER_PAGE_MAX, bytesMax: EVENTS_PAGE_BYTES_MAX };
      return inTurn(async () => {
        const page = await events.read(after, wanted);
        const texts = page.events.map(({ bytes, eventHash }) => eventText(bytes, eventHash));
        const body = `{"events":[${texts.join(",")}],"throughSequence":${page.through}}`;
        return { body, contentType: "application/json; charset=utf-8" };
      });
    },
    eventsVerify: async (call) => {
      await beFresh(service, call.query);
      if (isVerifying)
        throw new Refusal("OVERLOADED", "This node verifies its events already. Retry when that is done.");
      isVerifying = true;
      return verification(service, parts, call, () => {
        isVerifying = false;
      });
    },
    eventsProof: async ({ query }) => {
      await beFresh(service, query);
      return { body: await proof(parts, lines, query) };
    },
  };
}

function filterOf({ type, entity, entity_type: entityType }: Call<"events">["query"]): EventsFilter | null {
  if (type === undefined && entity === undefined && entityType === undefined) return null;
  return { types: type?.split(",") ?? null, entityId: entity ?? null, entityType: entityType ?? null };
}

/**
 * Soon done, it is an answer or an error like any other. What takes longer is a stream: a space now and then, which means nothing
 * in JSON, keeps the connection and finds out who has gone; and what goes wrong then is told as the JSON of an error, where
 * `valid` would stand.
 */
async function verification(
  service: Service,
  { events }: JobsParts,
  call: Call<"eventsVerify">,
  done: () => void,
): Promise<Answer | StreamAnswer> {
  const { clock, limits, polls, nodeId } = service;
  const { gone, method } = call;
  const contentType = "application/json; charset=utf-8";
  if (method === "HEAD") {
    done();
    return { body: "", contentType };
  }
  const poll = polls.open(null, gone, call);
  const ended = new AbortController();
  const arrivals = call.query.line === undefined ? service.arrivals?.() : undefined;
  const verified: Promise<Verified | ArrivalsVerified> =
    arrivals?.verify(poll.signal) ?? events.verify(() => undefined, poll.signal);
  const verdict = verified
    .then(verdictText)
    .catch((error: unknown) => {
      // Its signal says no more than that; the server's stop is told, and whoever has gone hears nothing.
      throw poll.ended === null ? error : stopping(nodeId);
    })
    .finally(() => {
      poll.close();
      ended.abort("done");
      done();
    });
  const quick = await Promise.race([verdict, pause(clock, limits.heartbeatMs, ended.signal).then(() => null)]);
  // A verdict that comes with the time's end is given all the same.
  if (quick !== null || ended.signal.aborted) return { body: quick ?? (await verdict), contentType };
  const stream = async (out: Outlet): Promise<void> => {
    // Where the client has gone the verification ends by its signal.
    const beating = beat(service, out, ended.signal).catch(() => undefined);
    const text = await verdict.catch((error: unknown) => {
      if (!TenureError.is(error)) throw error;
      return JSON.stringify(errorBody(error.code, error.message));
    });
    await beating;
    await out.write(text);
  };
  return { contentType, stream };
}

async function beat({ clock, limits }: Service, out: Outlet, ended: AbortSignal): Promise<void> {
  do await out.write(" ");
  while (await pause(clock, limits.heartbeatMs, ended));
}

/** Of a site that is distributed, or has been: own and foreign events in the order of their arrival, by arrival number. */
async function arrived(arrivals: Arrivals, after: number, call: Call<"eventsSince">): Promise<Answer> {
  const { query, inTurn } = call;
  const wanted = { max: query.limit ?? EVENTS_PER_PAGE_MAX, bytesMax: EVENTS_PAGE_BYTES_MAX };
  return inTurn(async () => {
    const { events, through } = await arrivals.read(after, wanted);
    const withheld = events.filter(({ bytes }) => bytes === null).length;
    const rest = `"throughSequence":${through},"withheld":${withheld},"logId":${JSON.stringify(arrivals.logId())}`;
    return {
      body: `{"events":[${events.map(arrivalText).join(",")}],${rest}}`,
      contentType: "application/json; charset=utf-8",
    };
  });
}

function verdictText({ first: firstSequence, ...rest }: Verified | ArrivalsVerified): string {
  if (!rest.valid) return JSON.stringify({ ...rest, firstSequence });
  const { through: throughSequence, ...others } = rest;
  return JSON.stringify({ ...others, firstSequence, throughSequence });
}

async function proof(
  { events }: JobsParts,
  lines: MeshLines | undefined,
  query: Call<"eventsProof">["query"],
): Promise<object> {
  const { line, sequence, from_size: fromSize } = query;
  if (line !== undefined && lines === undefined) throw standalone();
  if (line !== undefined && !lines!.has(line)) throw new TenureError("NOT_FOUND", `There is no line ${line} here.`);
  const head = line === undefined ? events.head().sequence : lines!.size(line);
  const treeSize = query.tree_size ?? head;
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
  if (treeSize > head || least > treeSize) {
    const [field, value] =
      treeSize > head ? ["tree_size", head] : [sequence === undefined ? "from_size" : "sequence", treeSize];
    throw new Refusal("BAD_REQUEST", `${field} must be at most ${value} here.`, { field });
  }
  if (sequence !== undefined) {
    const inclusion = await (line === undefined
      ? events.inclusion(sequence, treeSize)
      : lines!.inclusion(line, sequence, treeSize));
    return { kind: "inclusion", ...toSnake(inclusion) };
  }
  const consistency = await (line === undefined
    ? events.consistency(least, treeSize)
    : lines!.consistency(line, least, treeSize));
  return { kind: "consistency", ...toSnake(consistency) };
}
