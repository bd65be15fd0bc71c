// The thread that writes. It takes whatever has been posted before it commits, so that puts that came while it was busy
// share a transaction.

import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { assertNever } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { goToBackground } from "./background.ts";
import type { Answers, Posted, StoreOptions, ThreadMessage, WriterRequest } from "./messages.ts";
import { Writer } from "./writer.ts";

goToBackground();
const port = parentPort!;
const post = (message: ThreadMessage): void => port.postMessage(message);
const answer = (id: number, value: Answers[WriterRequest["kind"]]): void => post({ kind: "answer", id, value });
const refuse = (id: number, error: TenureError): void => {
  post({ kind: "refusal", id, code: error.code, message: error.message });
};

const writer = new Writer(workerData as StoreOptions, {
  stored: (id) => answer(id, null),
  refused: refuse,
  replaced: (aside, reason) => post({ kind: "replaced", aside, reason }),
});

port.on("message", (first: Posted<WriterRequest>) => {
  for (let posted: Posted<WriterRequest> | undefined = first; posted !== undefined; posted = nextPosted()) take(posted);
  writer.flush();
});

function nextPosted(): Posted<WriterRequest> | undefined {
  return receiveMessageOnPort(port)?.message as Posted<WriterRequest> | undefined;
}

function take({ id, request }: Posted<WriterRequest>): void {
  switch (request.kind) {
    case "position":
      return attempt(id, () => writer.position());
    case "line":
      return attempt(id, () => writer.line());
    case "doubt":
      return attempt(id, () => writer.doubt(request.nowMs));
    case "trust":
      return attempt(id, () => writer.trust());
    case "holes":
      return attempt(id, () => writer.holes());
    case "set-holes":
      return attempt(id, () => writer.setHoles(request.ranges));
    case "rebuild":
      return attempt(id, () => writer.rebuild(request.why));
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
    default:
      assertNever(request, "writer request");
  }
}

function attempt(id: number, work: () => Answers[WriterRequest["kind"]]): void {
  try {
    answer(id, work());
  } catch (error) {
    if (!TenureError.is(error)) throw error;
    refuse(id, error);
  }
}
