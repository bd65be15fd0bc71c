// Ids of transactions: UUIDs of version 7 (RFC 9562). The time in front is what islands know the age of an id by.

const TIME_DIGITS = 12;
/** After the time and the version: three digits, the variant, and all the rest. */
const RANDOM_BYTES = 10;
const VARIANT = 0x80;
const VARIANT_MASK = 0x3f;

export function newTransactionId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(RANDOM_BYTES));
  bytes[2] = ((bytes[2] as number) & VARIANT_MASK) | VARIANT;
  const random = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const time = Date.now().toString(16).padStart(TIME_DIGITS, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(1, 4)}-${random.slice(4, 8)}-${random.slice(8)}`;
}
