// The door of the demonstration that `npm start` shows.

export { Demonstration } from "./demonstration.ts";
export { jsonOf, tableOf } from "./summary.ts";
export type { RecordKind, TimelineRecord } from "./timeline.ts";
