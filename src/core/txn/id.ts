// Ids of transactions: UUIDs of version 7 (RFC 9562), in lower case. The time at which one was made is in front, so their order as texts is that of
// their making, and an id says by itself how old it is.

const PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const HEX = 16;
const TIME_DIGITS = 12;

export function isTxnId(text: unknown): text is string {
  return typeof text === "string" && PATTERN.test(text);
}

/** When it was made, by the clock of whoever made it. */
export function createdMs(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), HEX);
}

/** Ids that are made then, or later, come after this text; those before come before it. */
export function firstText(ms: number): string {
  const time = Math.max(0, ms).toString(HEX).padStart(TIME_DIGITS, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}`;
}
