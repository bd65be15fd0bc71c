// The door of the spread: who pushes which line to whom.

export type { Head, LinkId, PageFate, SentOutcome, SpreadEffect, SpreadInput } from "./messages.ts";
export { Spread } from "./spread.ts";
