// Links between sites: the stream that another site is sent, and what it delivers. One bad page spoils no other; a request with a single page is
// refused as a whole where that page is.

import { type LINKS_ROUTES, printable } from "../../contract/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { MeshLinks, OpenAnswer, ReceivedDelivery, ServedStream } from "../../ports/mesh/links.ts";
import type { PageOutcome } from "../../ports/mesh/sites.ts";
import { PAGE_WORDS_SHOWN_MAX } from "../limits.ts";
import { Refusal } from "../refusal.ts";
import type { Outlet } from "../streams/stream.ts";
import type { Caller } from "../traffic/callers.ts";
import type { Answer, Call, Handlers, Service, StreamAnswer } from "./handler.ts";
import { requireSite, siteOf } from "./mesh-caller.ts";

type Ids = keyof typeof LINKS_ROUTES;

/** `links`: undefined where this site is standalone. */
export function meshLinksHandlers(service: Service, links: MeshLinks | undefined): Pick<Handlers, Ids> {
  return {
    meshStream: (call) => stream(known(service, links), call),
    broadcast: (call) => broadcast(known(service, links), call),
  };
}

function stream(links: MeshLinks, { body, caller, takeStream }: Call<"meshStream">): StreamAnswer {
  requireSite(caller, body.controller);
  const release = takeStream();
  let opened: OpenAnswer;
  try {
    opened = links.open(body.controller, body.heads);
    if (opened.kind === "limited") throw limited(body.controller, opened.retryAfterMs);
  } catch (error) {
    release();
    throw error;
  }
  const served = opened.stream;
  const close = (): void => {
    served.close();
    release();
  };
  return {
    contentType: "application/x-ndjson; charset=utf-8",
    headers: { "x-accel-buffering": "no" },
    abandoned: close,
    stream: (out) => write(served, out).finally(close),
  };
}

export function limited(controller: string, retryAfterMs: number): Refusal {
  const retryAfterS = Math.ceil(retryAfterMs / 1_000);
  const text = `${controller} sends more than a site may. Nothing was taken; send it again in ${retryAfterS} s.`;
  return new Refusal("RATE_LIMITED", text, {}, retryAfterS);
}

/** The next message is made when the last one has found room. */
async function write(served: ServedStream, out: Outlet): Promise<void> {
  const onAbort = (): void => served.close();
  out.signal.addEventListener("abort", onAbort, { once: true });
  if (out.signal.aborted) onAbort();
  try {
    for (let message = await served.next(); message !== null; message = await served.next()) {
      await out.write(`${JSON.stringify(message)}\n`);
    }
  } finally {
    out.signal.removeEventListener("abort", onAbort);
  }
}

async function broadcast(links: MeshLinks, { body, caller }: Call<"broadcast">): Promise<Answer> {
  if (!("controller" in body)) return hinted(links, body);
  requireSite(caller, body.controller);
  const delivery: ReceivedDelivery = body;
  const answer = await links.deliver(delivery);
  if (answer.kind === "limited") throw limited(body.controller, answer.retryAfterMs);
  const pages = answer.body.pages.map(shown);
  const [only, ...others] = pages;
  const hasMore = [body.heads, body.graft, body.prune].some((part) => part !== undefined);
  if (only !== undefined && others.length === 0 && !hasMore) refuse(only);
  return { body: { ...answer.body, pages } };
}

/** Names and problems may have words of the page in them: whoever reads the answer may print them on a terminal. */
function shown(outcome: PageOutcome): PageOutcome {
  const line = plain(outcome.line);
  if (!("error" in outcome) || outcome.problem === undefined) return { ...outcome, line };
  return { ...outcome, line, problem: plain(outcome.problem) };
}

function plain(text: string): string {
  return printable(text.slice(0, PAGE_WORDS_SHOWN_MAX));
}

/** Throws PERMISSION_DENIED. */
export function refuseEvicted(links: MeshLinks | undefined, caller: Caller): void {
  const site = siteOf(caller);
  if (site !== null && links?.isEvicted(site) === true) {
    throw new Refusal("PERMISSION_DENIED", `${site} was evicted.`);
  }
}

/** Of a request that has one page and nothing else. */
function refuse(outcome: PageOutcome): void {
  if (!("error" in outcome)) return;
  const { line, sequence, have, problem = "it is not what its site has signed" } = outcome;
  switch (outcome.error) {
    case "EVENT_INVALID": {
      const page = line === "" ? "The page" : `The page of ${line}`;
      const place = sequence === undefined ? "" : `event ${sequence}: `;
      throw new Refusal("EVENT_INVALID", `${page} is refused: ${place}${problem}.`, { line, sequence });
    }
    case "CHAIN_GAP":
      throw new Refusal("CHAIN_GAP", `${have} events of ${line} are known here: send what follows them.`, {
        line,
        have,
      });
    case "LINE_UNKNOWN":
      throw new Refusal("LINE_UNKNOWN", `Nobody has registered the line ${line} here, or vouched for it.`, { line });
    case "NOT_LEADER":
      throw new TenureError("NOT_LEADER", "This node stopped leading.");
    default:
  }
}

function hinted(links: MeshLinks, event: Readonly<Record<string, unknown>>): Answer {
  const hint = links.hint(event);
  switch (hint) {
    case "known":
      return { body: { pending: 0 } };
    case "pending":
      return { status: 202, body: { pending: 1 } };
    case "invalid":
      throw new Refusal("EVENT_INVALID", "The event's hash is not that of its fields.");
    case "line-unknown":
      throw new Refusal("LINE_UNKNOWN", "No site whose events are taken here writes under this sourceControllerId.");
    default:
      throw hint satisfies never;
  }
}

/** Throws NOT_LEADER, MESH_DISABLED. */
function known({ cluster, nodeId }: Service, links: MeshLinks | undefined): MeshLinks {
  if (cluster.currentRole() !== "LEADER") throw new TenureError("NOT_LEADER", `${nodeId} does not lead`);
  if (links !== undefined) return links;
  const text = 'This site is standalone. Set mode = "distributed" in [mesh] to join sites; see docs/mesh.md.';
  throw new TenureError("MESH_DISABLED", text);
}
