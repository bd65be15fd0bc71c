// History between the nodes of a cluster: a node that lacks segments asks whoever is connected, and serves what it has.
// Who leads does not matter.

import {
  decodeHistoryQuery,
  decodeLacks,
  decodeStart,
  encodeLacks,
  encodeLacksQuery,
  encodeSegmentQuery,
  encodeStart,
  encodeStartQuery,
  rangesOf,
  type Lacks,
} from "../../../core/archive/index.ts";
import type { PeerKey } from "../../../core/kit/ids.ts";
import { ANSWER_BYTES_MAX } from "../../../core/kit/limits.ts";
import type { Answering, PeerQueries } from "../../../ports/peers/queries.ts";
import type { Archive } from "../archive.ts";
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
        lacks: () => lacksOf(queries, peer),
      },
    }));
  const fetcher = new SegmentFetcher({ ...options, peers });
  queries.onQuery(segmentAnswers(archive));
  queries.onAskable(() => fetcher.poke());
  fetcher.poke();
  return fetcher;
}

/** What a member says that it lacks; null where it does not say. */
export async function lacksOf(queries: Pick<PeerQueries, "ask">, peer: PeerKey): Promise<Lacks | null> {
  const answer = await queries.ask(peer, encodeLacksQuery());
  return answer === null ? null : decodeLacks(answer);
}

/** What this node lacks. */
export function ownLacks(archive: Pick<Archive, "manifest" | "missing" | "lastSequence">): Lacks {
  const { start } = archive.manifest();
  return { start: start.sequence, reached: archive.lastSequence, ranges: rangesOf(archive.missing()) };
}

/** Whole sealed segments, a piece at a time, where history starts, and what lacks; anything else is answered with nothing. */
export function segmentAnswers(archive: Pick<Archive, "serve" | "manifest" | "missing" | "lastSequence">): Answering {
  return async (_from, query) => {
    const asked = decodeHistoryQuery(query);
    if (asked === null) return null;
    if (asked.kind === "start") return encodeStart(archive.manifest().start.sequence);
    if (asked.kind === "lacks") return encodeLacks(ownLacks(archive));
    if (asked.bytesMax === 0) return null;
    const piece = await archive.serve(asked.first, asked.offsetBytes, Math.min(asked.bytesMax, ANSWER_BYTES_MAX));
    return piece === null || piece.length === 0 ? null : piece;
  };
}
