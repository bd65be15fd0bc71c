// The door of the jobs: commands become events, events become the book.

export { JobsBook, type PreparedBook } from "./book.ts";
export type {
  CommandOf,
  DecideContext,
  Decision,
  JobsAnswers,
  JobsCommand,
  JobsCommandKind,
  TakenJob,
} from "./commands.ts";
export { decide } from "./decide.ts";
export { type OpenClass, openClasses, type WantedKinds } from "./decide-lease.ts";
export { JOBS_EVENT_TYPES, type JobsEvent } from "./events.ts";
export { BOOK_LIMITS, type BookLimits, type BookOptions } from "./state.ts";
export type { JobsView, LeaseView, Renewal } from "./views.ts";
export { type DueTimes, DueWalk } from "./catch-up.ts";
export { type Cron, nextAfter, parseCron } from "./cron.ts";
