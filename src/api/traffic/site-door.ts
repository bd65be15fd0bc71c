// What other sites ask, on whatever route, before any of it is read. A site that sends more than it may is refused with the time after which it may go
// on. One that goes on all the same is held: its body is not read, so that it can't send more on that connection; then it is refused, and the
// connection is closed with the rest of the body unread. So its flood costs it a connection for each request, and this node next to nothing.
//
//   arrived ──▶ let in
//      ├──────▶ refused (429): it is too much
//      └─early▶ held ──the time is over; the server stops; the client has gone──▶ refused (429, 503), closed
//                └─ as many of this site are: refused and closed at once
//
// A client that leaves in the middle of its body is noticed when the time is over: nobody reads there.

import type { FastifyReply, FastifyRequest } from "fastify";
import { LINKS_ROUTES, statusOf } from "../../contract/index.ts";
import { DELIVERY_BYTES_MAX } from "../../contract/mesh/limits.ts";
import type { MeshLinks } from "../../ports/mesh/links.ts";
import { siteOf } from "../handlers/mesh-caller.ts";
import { limited } from "../handlers/mesh-links.ts";
import { HELD_MS } from "../limits.ts";
import { stopping } from "../refusal.ts";
import type { EndOfPoll, LongPolls } from "./long-polls.ts";
import { type Passage, passageOf, registeredOf } from "./passage.ts";
import type { Shares } from "./shares.ts";

export interface SiteDoorOptions {
  /** Undefined where this site is standalone. */
  readonly links: Pick<MeshLinks, "arrives" | "wasted"> | undefined;
  readonly polls: LongPolls;
  readonly shares: Shares;
  readonly nodeId: string;
}

const MS_PER_S = 1_000;
const DELIVERY = `POST ${LINKS_ROUTES.broadcast.path}`;
/** What came was no request. */
const WASTED: ReadonlySet<number> = new Set([statusOf("BAD_REQUEST"), statusOf("PAYLOAD_TOO_LARGE")]);
/** It is refused in the end, whatever its key is good for by then. */
const ADMISSION = { isStillAdmitted: () => true, admittedForMs: () => Infinity };

export class SiteDoor {
  readonly #options: SiteDoorOptions;

  constructor(options: SiteDoorOptions) {
    this.#options = options;
  }

  /** Rejects with RATE_LIMITED, or BACKEND_UNAVAILABLE where the server stops. */
  async arrive(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { links, nodeId } = this.#options;
    const passage = passageOf(request);
    const site = passage === null ? null : siteOf(passage.caller);
    if (passage === null || site === null || links === undefined) return;
    const isDelivery = registeredOf(request)?.name === DELIVERY;
    const bytes = bytesOf(request.headers);
    const arrival = links.arrives(site, bytes, isDelivery);
    if (arrival.kind === "let-in") {
      reply.raw.once("close", () => {
        if (!passage.isBegun && WASTED.has(reply.statusCode)) links.wasted(site, bytes);
      });
      return;
    }
    if (arrival.kind === "limited") throw limited(site, arrival.retryAfterMs);
    void reply.header("connection", "close");
    throw (await this.#hold(passage)) === "stop" ? stopping(nodeId) : limited(site, MS_PER_S);
  }

  async #hold({ payer, over }: Passage): Promise<EndOfPoll | null> {
    const { polls, shares } = this.#options;
    if (shares.isFull(payer, "held")) return null;
    shares.add(payer, "held", 1);
    const poll = polls.open(HELD_MS, over.signal, ADMISSION);
    try {
      await aborted(poll.signal);
      return poll.ended;
    } finally {
      poll.close();
      shares.add(payer, "held", -1);
    }
  }
}

/** Of the body, as much of it as may be read: of what is longer nothing is. One that does not say its length counts as the longest. */
function bytesOf(headers: FastifyRequest["headers"]): number {
  const length = headers["content-length"];
  if (length !== undefined) return Math.min(Number(length), DELIVERY_BYTES_MAX);
  return headers["transfer-encoding"] === undefined ? 0 : DELIVERY_BYTES_MAX;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
    if (signal.aborted) resolve();
  });
}
