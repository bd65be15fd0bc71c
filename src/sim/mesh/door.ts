// What one process of a site answers to other sites: by the handlers of production's API, without the web around them.

import { assertNever } from "../../core/kit/assert.ts";
import type { Answer, Call, Service, StreamAnswer } from "../../api/handlers/handler.ts";
import { meshLinksHandlers } from "../../api/handlers/mesh-links.ts";
import type { Outlet } from "../../api/streams/stream.ts";
import { statusOf } from "../../contract/error-body.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { Cluster } from "../../ports/cluster.ts";
import type { Controllers } from "../../ports/mesh/controllers.ts";
import type { LineSource } from "../../ports/mesh/lines.ts";
import type { MeshLinks } from "../../ports/mesh/links.ts";
import type { LinkMessage, SiteAnswer } from "../../ports/mesh/sites.ts";
import type { Boot } from "../kernel/index.ts";
import type { Door, Opening, Question } from "./transport.ts";

export interface DoorParts {
  readonly links: MeshLinks;
  readonly cluster: Cluster;
  readonly controllers: Controllers;
  readonly lines: Pick<LineSource, "consistency">;
  /** Of the site, for whoever asked a node that does not lead. */
  readonly urls: readonly string[];
  /** A registration or heartbeat of this site was answered well. */
  readonly heard: (controller: string) => void;
}

export function doorOf(parts: DoorParts, { isAlive }: Boot): Door {
  return {
    isAlive,
    answer: (question) => answered(parts, async () => answerOf(parts, question)),
    stream: (opening, signal, send) => answered(parts, async () => serve(parts, opening, signal, send)),
  };
}

async function answerOf(parts: DoorParts, question: Question): Promise<SiteAnswer<unknown>> {
  const { controllers, lines, heard } = parts;
  switch (question.kind) {
    case "identify":
      return { kind: "answer", body: controllers.list(false)[0]?.id ?? "" };
    case "register": {
      const { id, url, name, metadata } = question.introduction;
      await controllers.register({ id, url, name, metadata });
      heard(id);
      return { kind: "answer", body: null };
    }
    case "heartbeat":
      await controllers.heartbeat({ id: question.id });
      heard(question.id);
      return { kind: "answer", body: null };
    case "consistency": {
      const { fromRoot, root, path } = await lines.consistency(question.line, question.from, question.to);
      return { kind: "answer", body: { fromRoot, root, path } };
    }
    case "deliver": {
      const { delivery } = question;
      const call = { body: delivery, caller: callerOf(delivery.controller), header: () => lengthOf(delivery) };
      const { body } = (await handlersOf(parts).broadcast(call as unknown as Call<"broadcast">)) as Answer;
      return { kind: "answer", body };
    }
    default:
      return assertNever(question, "question");
  }
}

/** A simulated site serves any number of streams: the bound on streams is the server's own. */
const takeStream = (): (() => void) => () => undefined;

async function serve(
  parts: DoorParts,
  opening: Opening,
  signal: AbortSignal,
  send: (message: LinkMessage) => Promise<void>,
): Promise<SiteAnswer<null>> {
  const call = { body: opening, caller: callerOf(opening.controller), header: () => lengthOf(opening), takeStream };
  const answer = (await handlersOf(parts).meshStream(call as unknown as Call<"meshStream">)) as StreamAnswer;
  const write = (line: string): Promise<void> => send(messageOf(JSON.parse(line) as WireMessage));
  try {
    await answer.stream({ signal, write } as unknown as Outlet);
  } catch (error) {
    if (!TenureError.is(error)) throw error;
  }
  return { kind: "answer", body: null };
}

function handlersOf({ links, cluster }: Pick<DoorParts, "links" | "cluster">): ReturnType<typeof meshLinksHandlers> {
  return meshLinksHandlers({ cluster } as unknown as Service, links);
}

/** As its header says it. */
function lengthOf(body: object): string {
  return String(JSON.stringify(body).length);
}

function callerOf(controller: string): Call<"broadcast">["caller"] {
  return { how: "key", name: controller, role: "controller" };
}

async function answered<T>({ urls }: DoorParts, ask: () => Promise<SiteAnswer<T>>): Promise<SiteAnswer<T>> {
  try {
    return await ask();
  } catch (error) {
    if (!TenureError.is(error)) throw error;
    const { code, message } = error;
    const elsewhere = code === "NOT_LEADER" ? urls : [];
    const retryAfterMs =
      "retryAfterS" in error && typeof error.retryAfterS === "number" ? error.retryAfterS * 1_000 : null;
    return { kind: "refused", status: statusOf(code), code, message, retryAfterMs, urls: elsewhere };
  }
}

/** As the stream writes it. */
interface WireMessage {
  readonly hello?: Extract<LinkMessage, { kind: "hello" }>["introduction"];
  readonly page?: unknown;
  readonly heads?: readonly string[];
  readonly at?: number;
  readonly graft?: Extract<LinkMessage, { kind: "graft" }>["graft"];
  readonly prune?: { readonly line: string };
  readonly urls?: readonly string[];
}

/** As the driver reads it. */
function messageOf({ hello, page, heads, at, graft, prune, urls }: WireMessage): LinkMessage {
  if (hello !== undefined) return { kind: "hello", introduction: hello };
  if (page !== undefined) return { kind: "page", page };
  if (heads !== undefined) return { kind: "heads", heads, atMs: at ?? 0 };
  if (graft !== undefined) return { kind: "graft", graft };
  if (prune !== undefined) return { kind: "prune", line: prune.line };
  return { kind: "bye", urls: urls ?? [] };
}
