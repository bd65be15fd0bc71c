// Links between sites: the stream that another site is sent, and what it delivers. One bad page spoils no other; a request with a single page is
// refused as a whole where that page is.

import type { LINKS_ROUTES } from "../../contract/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { MeshLinks, ReceivedDelivery, ServedStream } from "../../ports/mesh/links.ts";
import type { PageOutcome } from "../../ports/mesh/sites.ts";
import { Refusal } from "../refusal.ts";
import type { Outlet } from "../streams/stream.ts";
import type { Answer, Call, Handlers, Service } from "./handler.ts";
import { requireSite } from "./mesh-caller.ts";

type Ids = keyof typeof LINKS_ROUTES;

/** `links`: undefined where this site is standalone. */
export function meshLinksHandlers(service: Service, links: MeshLinks | undefined): Pick<Handlers, Ids> {
  return {
    meshStream: ({ body, caller, takeStream }) => {
      const served = known(service, links);
      requireSite(caller, body.controller);
      const release = takeStream();
      let stream: ServedStream;
      try {
        stream = served.open(body.controller, body.heads);
      } catch (error) {
        release();
        throw error;
      }
      const close = (): void => {
        stream.close();
        release();
      };
      return {
        contentType: "application/x-ndjson; charset=utf-8",
        headers: { "x-accel-buffering": "no" },
        abandoned: close,
        stream: (out) => write(stream, out).finally(close),
      };
    },
    broadcast: (call) => broadcast(known(service, links), call),
  };
}

/** The next message is made when the last one has found room. */
async function write(stream: ServedStream, out: Outlet): Promise<void> {
  const onAbort = (): void => stream.close();
  out.signal.addEventListener("abort", onAbort, { once: true });
  if (out.signal.aborted) onAbort();
  try {
    for (let message = await stream.next(); message !== null; message = await stream.next()) {
      await out.write(`${JSON.stringify(message)}\n`);
    }
  } finally {
    out.signal.removeEventListener("abort", onAbort);
  }
}

async function broadcast(links: MeshLinks, { body, caller, header }: Call<"broadcast">): Promise<Answer> {
  if (!("controller" in body)) return hinted(links, body);
  requireSite(caller, body.controller);
  const delivery: ReceivedDelivery = body;
  const bytes = Number(header("content-length") ?? 0);
  const answer = await links.deliver(delivery, bytes);
  if (answer.kind === "limited") {
    const retryAfterS = Math.ceil(answer.retryAfterMs / 1_000);
    const text = `${body.controller} sends more than a site may. Nothing was taken; send it again in ${retryAfterS} s.`;
    throw new Refusal("RATE_LIMITED", text, {}, retryAfterS);
  }
  const [only, ...others] = answer.body.pages;
  const hasMore = [body.heads, body.graft, body.prune].some((part) => part !== undefined);
  if (only !== undefined && others.length === 0 && !hasMore) refuse(only);
  return { body: answer.body };
}

/** Of a request that has one page and nothing else. */
function refuse(outcome: PageOutcome): void {
  if (!("error" in outcome)) return;
  const { line, sequence, have } = outcome;
  switch (outcome.error) {
    case "EVENT_INVALID":
      throw new Refusal("EVENT_INVALID", `The page of ${line} is not what its site has signed.`, { line, sequence });
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
