// The thread that writes mesh.sqlite.

import type { MeshPiece, MeshWriterRequest } from "./mesh-messages.ts";
import type { MeshRows } from "./mesh-rows.ts";
import { MESH_DESIGN } from "./mesh-store.ts";
import { serveWrites } from "./serve.ts";

serveWrites<MeshPiece, MeshRows, Extract<MeshWriterRequest, { kind: "mark" }>>(MESH_DESIGN, (writer, { line, mark }) =>
  writer.change((rows) => rows.mark(line, mark)),
);
