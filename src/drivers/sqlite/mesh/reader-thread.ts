// The thread that reads mesh.sqlite.

import { assertNever } from "../../../core/kit/assert.ts";
import {
  readAgents,
  readCheckpoint,
  readControllers,
  readEvents,
  readHash,
  readJobs,
  readReceipt,
  readReceiptPlace,
} from "./reads.ts";
import type { MeshReadRequest } from "./messages.ts";
import { inTransaction, serveReads } from "../serve.ts";

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
    case "receipt":
      return readReceipt(opened, request.line, request.sequence);
    case "receipt-place":
      return readReceiptPlace(opened, request.receipt);
    case "checkpoint":
      return readCheckpoint(opened, request.line, request.after);
    case "hash":
      return inTransaction(opened, () => readHash(opened));
    default:
      return assertNever(request, "mesh reader request");
  }
});
