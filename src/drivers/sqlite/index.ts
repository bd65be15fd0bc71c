// The door to the views in SQLite (ports/views.ts).

export { openViews, type SqliteViews, type ViewsOptions } from "./sqlite-views.ts";
