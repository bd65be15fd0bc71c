// The door to what is kept in SQLite: the views (ports/views.ts), and those of the mesh (ports/mesh/views.ts).

export { openViews, type SqliteViews, type ViewsOptions } from "./sqlite-views.ts";
export { openMeshViews } from "./mesh/sqlite-mesh.ts";
