// The thread that writes the views.

import { assertNever } from "../../core/kit/assert.ts";
import { JobRows } from "./job-rows.ts";
import type { PutPiece, WriterRequest } from "./messages.ts";
import { serveWrites } from "./serve.ts";
import { readHoles, readLine, viewsDesign } from "./store.ts";

type Request = Exclude<WriterRequest, { kind: "position" | "put" | "discard" | "close" }>;

serveWrites<PutPiece, JobRows, Request>(
  viewsDesign((database) => new JobRows(database)),
  (writer, request) => {
    switch (request.kind) {
      case "line":
        return writer.read(readLine);
      case "doubt":
        return writer.change((rows) => rows.doubt(request.nowMs));
      case "trust":
        return writer.change((rows) => rows.trust());
      case "holes":
        return writer.read(readHoles);
      case "set-holes":
        return writer.change((rows) => rows.setHoles(request.ranges));
      case "rebuild":
        return writer.rebuild(request.why);
      default:
        return assertNever(request, "writer request");
    }
  },
);
