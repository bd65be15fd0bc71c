// History between the nodes of a cluster: a node that lacks segments asks whoever is connected, and serves what it has.
// Who leads does not matter.

import {
  decodeHistoryQuery,
  decodeStart,
  encodeSegmentQuery,
  encodeStart,
  encodeStartQuery,
} from "../../core/archive/index.ts";
import { ANSWER_BYTES_MAX } from "../../core/kit/limits.ts";
import type { Answering, PeerQueries } from "../../ports/peer-queries.ts";
import type { Archive } from "./archive.ts";
import { SegmentFetcher, type FetcherOptions, type SegmentSource } from "./segment-fetcher.ts";

export interface ExchangeOptions extends Omit<FetcherOptions, "archive" | "peers"> {
  readonly archive: Archive;
  readonly queries: PeerQueries;
}

/** Serves the others from now on, and gets what is missing. Stop it before the archive is closed. */
export function exchangeSegments(options: ExchangeOptions): SegmentFetcher {
  const { archive, queries } = options;
  const peers = (): { readonly name: string; readonly source: SegmentSource }[] =>
    queries.askable().map((peer) => ({
      name: peer,
      source: {
        fetch: (first, offsetBytes, bytesMax) =>
          queries.ask(peer, encodeSegmentQuery({ first, offsetBytes, bytesMax })),
        start: async () => {
          const answer = await queries.ask(peer, encodeStartQuery());
          return answer === null ? null : decodeStart(answer);
        },
      },
    }));
  const fetcher = new SegmentFetcher({ ...options, peers });
  queries.onQuery(segmentAnswers(archive));
  queries.onAskable(() => fetcher.poke());
  fetcher.poke();
  return fetcher;
}

/** Whole sealed segments, a piece at a time, and where history starts; anything else is answered with nothing. */
export function segmentAnswers(archive: Pick<Archive, "serve" | "manifest">): Answering {
  return async (_from, query) => {
    const asked = decodeHistoryQuery(query);
    if (asked === null) return null;
    if (asked.kind === "start") return encodeStart(archive.manifest().start.sequence);
    if (asked.bytesMax === 0) return null;
    const piece = await archive.serve(asked.first, asked.offsetBytes, Math.min(asked.bytesMax, ANSWER_BYTES_MAX));
    return piece === null || piece.length === 0 ? null : piece;
  };
}
