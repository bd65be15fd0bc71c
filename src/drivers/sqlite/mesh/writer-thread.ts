// The thread that writes mesh.sqlite.

import { assertNever } from "../../../core/kit/assert.ts";
import { copyBase } from "./base.ts";
import type { MeshPiece, MeshWriterRequest } from "./messages.ts";
import type { MeshRows } from "./rows.ts";
import { MESH_DESIGN } from "./store.ts";
import { serveWrites } from "../serve.ts";

serveWrites<MeshPiece, MeshRows, Extract<MeshWriterRequest, { kind: "mark" | "forget" | "adopt" }>>(
  MESH_DESIGN,
  (writer, request) => {
    switch (request.kind) {
      case "mark":
        return writer.change((rows) => rows.mark(request.line, request.mark));
      case "forget": {
        let isMore = false;
        writer.change((rows) => void (isMore = rows.forget(request.before)));
        return isMore;
      }
      case "adopt":
        writer.rebuild("the saved state takes its place");
        copyBase(request.of, request.base, writer.path);
        return null;
      default:
        return assertNever(request, "mesh writer request");
    }
  },
);
