// The thread that writes mesh.sqlite.

import type { MeshPiece, MeshWriterRequest } from "./messages.ts";
import type { MeshRows } from "./rows.ts";
import { MESH_DESIGN } from "./store.ts";
import { serveWrites } from "../serve.ts";

serveWrites<MeshPiece, MeshRows, Extract<MeshWriterRequest, { kind: "mark" }>>(MESH_DESIGN, (writer, { line, mark }) =>
  writer.change((rows) => rows.mark(line, mark)),
);
