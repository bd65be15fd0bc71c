// The thread that reads mesh.sqlite.

import type { DatabaseSync } from "node:sqlite";
import { assertNever } from "../../../core/kit/assert.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import {
  copyTo,
  readAgents,
  readCheckpoint,
  readControllers,
  readEvents,
  readHash,
  readJobs,
  readLast,
  readReceipt,
  readReceiptPlace,
} from "./reads.ts";
import { Counting } from "./counting.ts";
import type { MeshReadRequest, StoredCount } from "./messages.ts";
import { inTransaction, serveReads } from "../serve.ts";

let counting: Counting | null = null;

function count(opened: DatabaseSync, isFirst: boolean): StoredCount | null {
  if (isFirst) {
    counting?.close();
    counting = new Counting(opened.location()!);
  }
  if (counting !== null && !counting.isOver) return counting.next();
  throw new TenureError("BACKEND_UNAVAILABLE", "the rows are not counted any more: begin again.");
}

serveReads<MeshReadRequest>((opened, request) => {
  switch (request.kind) {
    case "list":
      return readJobs(opened, request.query);
    case "agents":
      return inTransaction(opened, () => readAgents(opened, request.asked));
    case "controllers":
      return readControllers(opened);
    case "events":
      return inTransaction(opened, () => readEvents(opened, request.asked));
    case "last":
      return readLast(opened, request.line);
    case "receipt":
      return readReceipt(opened, request.line, request.sequence);
    case "receipt-place":
      return readReceiptPlace(opened, request.receipt);
    case "checkpoint":
      return readCheckpoint(opened, request.line, request.after);
    case "hash":
      return inTransaction(opened, () => readHash(opened));
    case "count":
      return count(opened, request.isFirst);
    case "copy":
      return copyTo(opened, request.to);
    default:
      return assertNever(request, "mesh reader request");
  }
});
