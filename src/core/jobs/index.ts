// The door of the jobs: commands become events, events become the book.

export { JobsBook, type PreparedBook } from "./state/book.ts";
export type { CommandOf, DecideContext, JobsAnswers, JobsCommand, JobsCommandKind, TakenJob } from "./commands.ts";
export { isAboutJobs } from "./events.ts";
export { decide } from "./decide/decide.ts";
export { type OpenClass, openClasses, type WantedKinds } from "./decide/lease.ts";
export { BOOK_LIMITS, type BookLimits } from "./state/state.ts";
export type { LeaseView } from "./state/views.ts";
export { type DueTimes, DueWalk } from "./decide/catch-up.ts";
export { type Cron, nextAfter, parseCron } from "./decide/cron.ts";
