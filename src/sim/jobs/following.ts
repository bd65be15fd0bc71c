// The log of events as one simulated server gives it out: production's handlers of pages, streams and proofs, without the web.

import { eventHandlers } from "../../api/handlers/events.ts";
import type { Call, StreamAnswer } from "../../api/handlers/handler.ts";
import type { Outlet } from "../../api/streams/stream.ts";
import type { ConsistencyProof, InclusionProof, Verified } from "../../ports/events.ts";
import { apiOf, type How, type ReadingParts } from "./reading.ts";

export interface Following {
  /** The body of the answer. */
  page(after: number, limit: number, how: How): Promise<string>;
  /** What is made with `out` begins when this has resolved. */
  open(headers: Readonly<Record<string, string>>, type?: string): Promise<(out: Outlet) => Promise<void>>;
  inclusion(sequence: number, size: number): Promise<InclusionProof>;
  consistency(from: number, size: number): Promise<ConsistencyProof>;
  verify(): Promise<Verified>;
  /** The last event that is applied here. */
  head(): number;
}

const inTurn = <T>(make: () => Promise<T>): Promise<T> => make();
const NOBODY_LEAVES = new AbortController().signal;

export function followingOf(parts: ReadingParts): Following {
  const { events } = parts.parts;
  const handlers = eventHandlers(...apiOf(parts));
  return {
    page: async (after, limit, consistency) => {
      const call = { params: { sequence: String(after) }, query: { limit, consistency }, inTurn };
      const answer = await handlers.eventsSince(call as unknown as Call<"eventsSince">);
      return (answer as { body: string }).body;
    },
    open: async (headers, type) => {
      const answer = await handlers.events({
        query: { type },
        header: (name: string) => headers[name],
        pointInTurn: inTurn,
        isStillAdmitted: () => true,
        takeStream: () => () => undefined,
      } as unknown as Call<"events">);
      return (out) => (answer as StreamAnswer).stream(out);
    },
    inclusion: (sequence, size) => events.inclusion(sequence, size),
    consistency: (from, size) => events.consistency(from, size),
    verify: () => events.verify(() => undefined, NOBODY_LEAVES),
    head: () => events.head().sequence,
  };
}
