// The thread that reads the views.

import type { DatabaseSync } from "node:sqlite";
import { assertNever } from "../../core/kit/assert.ts";
import { expiredJobs } from "./expired-jobs.ts";
import { listJobs } from "./job-list.ts";
import { readLog } from "./log-range.ts";
import type { ReaderRequest, StoredRow } from "./messages.ts";
import { inTransaction, serveReads } from "./serve.ts";
import { readHoles, readPosition } from "./store.ts";

type Request = Exclude<ReaderRequest, { kind: "reopen" | "close" }>;

serveReads<Request>((opened, request) => {
  switch (request.kind) {
    case "reached":
      return readPosition(opened);
    case "get":
      return inTransaction(opened, () => rowOf(opened, request.jobId));
    case "expired":
      return inTransaction(opened, () => expiredJobs(opened, request.nowMs, request.limit, request.after));
    case "list":
      return listJobs(opened, request.query);
    case "log": {
      const { jobId, attempt, offset, bytesMax } = request;
      return inTransaction(opened, () => readLog(opened, jobId, attempt, offset, bytesMax));
    }
    default:
      return assertNever(request, "reader request");
  }
});

/** Inside of a read transaction: a file that is replaced between two reads has another position. */
function rowOf(opened: DatabaseSync, jobId: string): StoredRow {
  const row = opened.prepare("SELECT json FROM jobs WHERE id = ?").get(jobId);
  const json = row === undefined ? null : (row["json"] as string);
  return { json, position: readPosition(opened), holes: readHoles(opened) };
}
