// The loops of the threads, the same for every file: a thread takes requests in the order in which they were posted, and each has one answer.

import type { DatabaseSync } from "node:sqlite";
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { TenureError } from "../../core/kit/errors.ts";
import { goToBackground } from "./background.ts";
import { faultOf } from "./faults.ts";
import type { Piece, Posted, StoreOptions, ThreadMessage } from "./messages.ts";
import { openReader, type StoreDesign } from "./store.ts";
import { type Rows, Writer } from "./writer.ts";

/** What every thread that writes is asked. */
type WriterBasics<P extends Piece> =
  | { readonly kind: "position" }
  | P
  | { readonly kind: "discard"; readonly reason: string }
  | { readonly kind: "close" };

/**
 * It takes whatever has been posted before it commits, so that puts that came while it was busy share a transaction. `answerTo`: to what is
 * no basic request.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller says what the thread is asked
export function serveWrites<P extends Piece, R extends Rows<P>, Q extends { readonly kind: string }>(
  design: StoreDesign<R>,
  answerTo: (writer: Writer<P, R>, request: Q) => unknown,
): void {
  goToBackground();
  const port = parentPort!;
  const post = (message: ThreadMessage): void => port.postMessage(message);
  const answer = (id: number, value: unknown): void => post({ kind: "answer", id, value });
  const refuse = (id: number, error: TenureError): void => {
    post({ kind: "refusal", id, code: error.code, message: error.message });
  };
  const writer = new Writer<P, R>(design, workerData as StoreOptions, {
    stored: (id) => answer(id, null),
    refused: refuse,
    replaced: (aside, reason) => post({ kind: "replaced", aside, reason }),
  });
  const attempt = (id: number, work: () => unknown): void => {
    try {
      answer(id, work());
    } catch (error) {
      if (!TenureError.is(error)) throw error;
      refuse(id, error);
    }
  };
  const take = ({ id, request }: Posted<WriterBasics<P> | Q>): void => {
    if (isBasic<P>(request)) {
      switch (request.kind) {
        case "position":
          return attempt(id, () => writer.position());
        case "put":
          writer.put(id, request);
          return;
        case "discard":
          writer.discard(request.reason);
          answer(id, null);
          return;
        case "close":
          writer.close();
          answer(id, null);
          port.close();
          return;
      }
    }
    attempt(id, () => answerTo(writer, request));
  };
  const nextPosted = (): Posted<Q> | undefined => receiveMessageOnPort(port)?.message as Posted<Q> | undefined;
  port.on("message", (first: Posted<Q>) => {
    for (let posted: Posted<Q> | undefined = first; posted !== undefined; posted = nextPosted()) take(posted);
    writer.flush();
  });
}

function isBasic<P extends Piece>(request: { readonly kind: string }): request is WriterBasics<P> {
  return ["position", "put", "discard", "close"].includes(request.kind);
}

/** With a connection of its own: what is searched for never keeps a put waiting. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller says what the thread is asked
export function serveReads<Q extends { readonly kind: string }>(
  answerTo: (opened: DatabaseSync, request: Q) => unknown,
): void {
  goToBackground();
  const port = parentPort!;
  const { path } = workerData as StoreOptions;
  const post = (message: ThreadMessage): void => port.postMessage(message);
  let connection: DatabaseSync | null = null;
  const answer = (request: Q): unknown => {
    if (request.kind !== "close" && request.kind !== "reopen")
      return answerTo((connection ??= openReader(path)), request);
    connection?.close();
    connection = null;
    return null;
  };
  port.on("message", ({ id, request }: Posted<Q>) => {
    try {
      post({ kind: "answer", id, value: answer(request) });
    } catch (error) {
      const fault = faultOf(error, path);
      if (fault === null) throw error;
      post({ kind: "refusal", id, code: fault.error.code, message: fault.error.message });
    }
    if (request.kind === "close") port.close();
  });
}

export function inTransaction<T>(opened: DatabaseSync, work: (opened: DatabaseSync) => T): T {
  opened.exec("BEGIN");
  try {
    return work(opened);
  } finally {
    opened.exec("COMMIT");
  }
}
