// The door to the views in SQLite (ports/views.ts).

export { openViews, type SqliteViews, type ViewsOptions, type ViewsStats } from "./sqlite-views.ts";
