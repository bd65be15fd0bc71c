// Ids of transactions for tests. Clients make theirs as they make other ids.

const TIME_DIGITS = 12;
const HEX = 16;

/** `random.below(n)`: a whole number below n. */
export function newTxnId(nowMs: number, random: { below(below: number): number }): string {
  const time = Math.floor(nowMs).toString(HEX).padStart(TIME_DIGITS, "0").slice(-TIME_DIGITS);
  const hex = (count: number): string => Array.from({ length: count }, () => random.below(HEX).toString(HEX)).join("");
  const variant = (8 + random.below(4)).toString(HEX);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(3)}-${variant}${hex(3)}-${hex(12)}`;
}
