// The door of the merged state of all sites: rows per (job, line), what is shown of them, and their hash.

export type { AgentRow } from "./agent-row.ts";
export { type ControllerRow, shownController } from "./controller-row.ts";
export { type LineEvent, siteOf } from "./events.ts";
export type { JobWords } from "./job-row.ts";
export {
  EMPTY_SUM,
  Projection,
  projectionHash,
  type Row,
  type RowKind,
  type RowStore,
  rowTextHash,
} from "./projection.ts";
export { rowHash, RowSum } from "./row-sum.ts";
export { type LineMark, type LineStanding, type ShownJob, shownJob } from "./shown-job.ts";
