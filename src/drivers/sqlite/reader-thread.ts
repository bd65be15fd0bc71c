// The thread that reads, with a connection of its own: what is searched for never keeps a put waiting.

import type { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { assertNever } from "../../core/kit/assert.ts";
import { faultOf } from "./faults.ts";
import { expiredJobs } from "./expired-jobs.ts";
import { listJobs } from "./job-list.ts";
import { readLog } from "./log-range.ts";
import { goToBackground } from "./background.ts";
import type { Answers, Posted, ReaderRequest, StoredRow, StoreOptions, ThreadMessage } from "./messages.ts";
import { openReader, readHoles, readPosition } from "./store.ts";

goToBackground();
const port = parentPort!;
const { path } = workerData as StoreOptions;
const post = (message: ThreadMessage): void => port.postMessage(message);

let connection: DatabaseSync | null = null;

port.on("message", ({ id, request }: Posted<ReaderRequest>) => {
  try {
    post({ kind: "answer", id, value: answerTo(request) });
  } catch (error) {
    const fault = faultOf(error, path);
    if (fault === null) throw error;
    post({ kind: "refusal", id, code: fault.error.code, message: fault.error.message });
  }
  if (request.kind === "close") port.close();
});

function answerTo(request: ReaderRequest): Answers[ReaderRequest["kind"]] {
  switch (request.kind) {
    case "reached":
      return readPosition(database());
    case "get":
      return inTransaction((opened) => rowOf(opened, request.jobId));
    case "expired":
      return inTransaction((opened) => expiredJobs(opened, request.nowMs, request.limit, request.after));
    case "list":
      return listJobs(database(), request.query);
    case "log":
      return inTransaction((opened) =>
        readLog(opened, request.jobId, request.attempt, request.offset, request.bytesMax),
      );
    case "reopen":
    case "close":
      connection?.close();
      connection = null;
      return null;
    default:
      return assertNever(request, "reader request");
  }
}

function database(): DatabaseSync {
  connection ??= openReader(path);
  return connection;
}

/** Inside of a read transaction: a file that is replaced between two reads has another position. */
function rowOf(opened: DatabaseSync, jobId: string): StoredRow {
  const row = opened.prepare("SELECT json FROM jobs WHERE id = ?").get(jobId);
  const json = row === undefined ? null : (row["json"] as string);
  return { json, position: readPosition(opened), holes: readHoles(opened) };
}

function inTransaction<T>(work: (opened: DatabaseSync) => T): T {
  const opened = database();
  opened.exec("BEGIN");
  try {
    return work(opened);
  } finally {
    opened.exec("COMMIT");
  }
}
