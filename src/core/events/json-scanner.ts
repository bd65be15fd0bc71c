// Walks over JSON bytes and builds nothing. Two grammars: `strict` is RFC 8259 without what two readers could understand
// differently; `canonical` is RFC 8785, in which there is one spelling of each value, so that a scan proves that encoding the
// value again would give the same bytes, at a fraction of the cost.
//
// Invariants:
// - `at` never passes the end. Every problem is thrown as a JsonError that names the byte; nothing else is thrown.
// - Recursion is bounded by `depthMax`.

import { INTEGER_MAX } from "../kit/limits.ts";
import { KEYS_COMPARED_MAX } from "./limits.ts";

export class JsonError extends Error {
  readonly problem: string;
  readonly offset: number;

  constructor(problem: string, offset: number) {
    super(`${problem} at byte ${offset}`);
    this.name = "JsonError";
    this.problem = problem;
    this.offset = offset;
  }
}

/** Every number of so many digits is below 2^53. */
const EXACT_DIGITS_MAX = 15;
const TIME_MIN = 1_024;
const TIME_MAX = 2 ** 43;
const THOUSANDTHS = [1, 10, 100, 1_000];
const MULTIBYTE_MIN = 0x80;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LITERALS = ["true", "false", "null"].map((word) => Uint8Array.from(word, (letter) => letter.charCodeAt(0)));

/** 1: can't stand in a string as it is. */
const SPECIAL = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte === QUOTE || byte === BACKSLASH || byte >= MULTIBYTE_MIN ? 1 : 0,
);
/** The one letter that escapes a control character, by its code; 0 where it is \u00xx. */
const SHORT_ESCAPES: Readonly<Record<string, number>> = { b: 8, t: 9, n: 10, f: 12, r: 13, '"': 34, "\\": 92, "/": 47 };
const ESCAPED = new Uint8Array(256);
for (const [letter, code] of Object.entries(SHORT_ESCAPES)) ESCAPED[letter.charCodeAt(0)] = code;
const HAS_SHORT_ESCAPE = new Set(Object.values(SHORT_ESCAPES));

const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class JsonScanner {
  bytes: Uint8Array;
  at = 0;
  /** Whether the last string was ASCII without escapes: its bytes are its text. */
  plain = true;
  /** Whether the last string had an escape: the same text could be spelt with other bytes. */
  escaped = false;
  readonly #depthMax: number;
  readonly #isCanonical: boolean;
  /** Where the keys of the objects around here start and end, outermost first. */
  readonly #keys: number[] = [];

  constructor(bytes: Uint8Array, depthMax: number, grammar: "strict" | "canonical") {
    this.bytes = bytes;
    this.#depthMax = depthMax;
    this.#isCanonical = grammar === "canonical";
  }

  /** For the next bytes; whatever was under way is forgotten. */
  reset(bytes: Uint8Array): void {
    this.bytes = bytes;
    this.at = 0;
    this.#keys.length = 0;
  }

  /** The whole of the bytes is one value. */
  document(): void {
    this.#space();
    this.value(1);
    this.#space();
    if (this.at < this.bytes.length) this.fail("something follows the value");
  }

  fail(problem: string, offset = this.at): never {
    throw new JsonError(problem, offset);
  }

  /** `depth`: of the arrays and objects that contain what is in it, itself included. */
  value(depth: number): void {
    const code = this.bytes[this.at];
    if (code === QUOTE) this.string();
    else if (code === 0x7b) this.object(depth);
    else if (code === 0x5b) this.#array(depth);
    else if (code === 0x2d || isDigit(code)) this.number();
    else this.#word(code);
  }

  object(depth: number): void {
    this.#enter(depth);
    const base = this.#keys.length;
    let names: Set<string> | null = null;
    let wasPlain = true;
    if (!this.#closes(0x7d)) {
      do {
        this.#space();
        if (this.bytes[this.at] !== QUOTE) this.fail("a key was expected");
        const from = this.at;
        this.string();
        if (this.#isCanonical) {
          if (this.#keys.length > base) this.#checkOrder(from, wasPlain);
          this.#keys[base] = from + 1;
          this.#keys[base + 1] = this.at - 1;
          wasPlain = this.plain;
        } else names = this.#checkNew(from, base, names);
        this.#space();
        if (this.bytes[this.at] !== 0x3a) this.fail("a colon was expected");
        this.at++;
        this.#space();
        this.value(depth + 1);
      } while (!this.#ends(0x7d));
    }
    this.#keys.length = base;
  }

  /** Moves past it, and says in `plain` what it is made of. */
  string(): void {
    const { bytes } = this;
    let at = this.at + 1;
    this.plain = true;
    this.escaped = false;
    for (;;) {
      while (at < bytes.length && SPECIAL[bytes[at] as number] === 0) at++;
      if (at >= bytes.length) this.fail("a string without an end", at);
      const code = bytes[at] as number;
      if (code === QUOTE) break;
      this.plain = false;
      if (code === BACKSLASH) {
        this.escaped = true;
        at = this.#escape(at);
      } else if (code >= MULTIBYTE_MIN) at = this.#multibyte(at);
      else this.fail("a control character in a string", at);
    }
    this.at = at + 1;
  }

  /** The value where it is a plain integer of few digits, otherwise what the platform reads. */
  number(): number {
    const { bytes } = this;
    const from = this.at;
    let at = from;
    if (bytes[at] === 0x2d) at++;
    const digitsAt = at;
    let value = 0;
    while (isDigit(bytes[at])) value = value * 10 + ((bytes[at++] as number) - 0x30);
    const digits = at - digitsAt;
    if (digits === 0) this.fail("a digit was expected", at);
    if (digits > 1 && bytes[digitsAt] === 0x30) this.fail("a number with a leading zero", digitsAt);
    const code = bytes[at];
    this.at = at;
    const isPlain = digits <= EXACT_DIGITS_MAX && code !== 0x2e && code !== 0x65 && code !== 0x45;
    if (!isPlain) return this.#timeNumber(from, digitsAt, value) ?? this.#longNumber(from);
    if (digitsAt === from) return value;
    if (value === 0 && this.#isCanonical) this.fail("a negative zero", from);
    return -value;
  }

  /** What stands between two places, quotes excluded. */
  textBetween(start: number, end: number): string {
    const text = textDecoder.decode(this.bytes.subarray(start, end));
    return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
  }

  /**
   * Every event has a time with three decimals, and the platform's way to text and back takes longer than its hash. In this
   * range the grid of thousandths is wider than that of doubles, so a text without a last zero is the shortest of its value;
   * and the sum is rounded as the decimal would be, because the error of the fraction is below every distance to a tie.
   */
  #timeNumber(from: number, digitsAt: number, whole: number): number | null {
    const { bytes } = this;
    if (from !== digitsAt || whole < TIME_MIN || whole >= TIME_MAX || bytes[this.at] !== 0x2e) return null;
    const start = this.at + 1;
    let at = start;
    let fraction = 0;
    while (at < start + 3 && isDigit(bytes[at])) fraction = fraction * 10 + ((bytes[at++] as number) - 0x30);
    const next = bytes[at];
    if (at === start || bytes[at - 1] === 0x30 || isDigit(next) || next === 0x65 || next === 0x45) return null;
    this.at = at;
    return whole + fraction / (THOUSANDTHS[at - start] as number);
  }

  #longNumber(from: number): number {
    const { bytes } = this;
    if (bytes[this.at] === 0x2e) this.#digits(this.at + 1);
    if (bytes[this.at] === 0x65 || bytes[this.at] === 0x45) {
      const sign = bytes[this.at + 1];
      this.#digits(sign === 0x2b || sign === 0x2d ? this.at + 2 : this.at + 1);
    }
    const text = asciiText(bytes, from, this.at);
    const value = Number(text);
    if (!(Math.abs(value) <= INTEGER_MAX)) this.fail("a number beyond 2^53-1", from);
    if (this.#isCanonical && String(value) !== text) this.fail("a number in another than its shortest form", from);
    return value;
  }

  #digits(from: number): void {
    let at = from;
    while (isDigit(this.bytes[at])) at++;
    if (at === from) this.fail("a digit was expected", at);
    this.at = at;
  }

  #array(depth: number): void {
    this.#enter(depth);
    if (this.#closes(0x5d)) return;
    do {
      this.#space();
      this.value(depth + 1);
    } while (!this.#ends(0x5d));
  }

  #enter(depth: number): void {
    if (depth > this.#depthMax) this.fail(`nesting deeper than ${this.#depthMax}`);
    this.at++;
  }

  #closes(bracket: number): boolean {
    this.#space();
    if (this.bytes[this.at] !== bracket) return false;
    this.at++;
    return true;
  }

  #ends(bracket: number): boolean {
    this.#space();
    const code = this.bytes[this.at];
    if (code !== bracket && code !== 0x2c) this.fail("a comma or the end was expected");
    this.at++;
    return code === bracket;
  }

  #space(): void {
    if (this.#isCanonical) return;
    for (;;) {
      const code = this.bytes[this.at];
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.at++;
    }
  }

  #word(code: number | undefined): void {
    for (const word of LITERALS) {
      if (word[0] !== code) continue;
      if (!this.startsWith(word)) break;
      this.at += word.length;
      return;
    }
    this.fail("a value was expected");
  }

  startsWith(text: Uint8Array): boolean {
    const { bytes, at } = this;
    for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text[i]) return false;
    return true;
  }

  /** In canonical JSON keys grow, so that a key that comes twice is out of order too. */
  #checkOrder(from: number, wasPlain: boolean): void {
    const end = this.#keys.pop() as number;
    const start = this.#keys.pop() as number;
    const grows =
      wasPlain && this.plain
        ? isBelow(this.bytes, start, end, from + 1, this.at - 1)
        : this.textBetween(start, end) < this.textBetween(from + 1, this.at - 1);
    if (!grows) this.fail("a key that is not behind the one before it", from);
  }

  /** Few keys without escapes are compared as bytes; otherwise their texts go into a set. */
  #checkNew(from: number, base: number, names: Set<string> | null): Set<string> | null {
    const start = from + 1;
    const end = this.at - 1;
    const keys = this.#keys;
    if (names === null && !this.escaped && keys.length - base < 2 * KEYS_COMPARED_MAX) {
      for (let i = base; i < keys.length; i += 2) {
        if (areEqual(this.bytes, keys[i] as number, keys[i + 1] as number, this.bytes, start, end))
          this.fail("a key that occurs twice", from);
      }
      keys.push(start, end);
      return null;
    }
    const known = names ?? new Set<string>();
    if (names === null) {
      for (let i = base; i < keys.length; i += 2) known.add(this.textBetween(keys[i] as number, keys[i + 1] as number));
    }
    const name = this.textBetween(start, end);
    if (known.has(name)) this.fail("a key that occurs twice", from);
    return known.add(name);
  }

  /** Returns what is after the escape that starts at `at`. */
  #escape(at: number): number {
    const letter = this.bytes[at + 1] ?? 0;
    if (letter !== 0x75) {
      if (ESCAPED[letter] === 0 || (this.#isCanonical && letter === 0x2f)) this.fail("an unknown escape", at);
      return at + 2;
    }
    const unit = this.#hex(at);
    if (this.#isCanonical && (unit >= 0x20 || HAS_SHORT_ESCAPE.has(unit) || this.#hasUpperCase(at))) {
      this.fail("an escape that is not needed", at);
    }
    if (unit < 0xd800 || unit > 0xdfff) return at + 6;
    const isPair = unit < 0xdc00 && this.bytes[at + 6] === BACKSLASH && this.bytes[at + 7] === 0x75;
    const low = isPair ? this.#hex(at + 6) : 0;
    if (low < 0xdc00 || low > 0xdfff) this.fail("half of a surrogate pair", at);
    return at + 12;
  }

  #hex(at: number): number {
    let unit = 0;
    for (let i = at + 2; i < at + 6; i++) {
      const digit = hexDigit(this.bytes[i]);
      if (digit < 0) this.fail("an unknown escape", at);
      unit = unit * 16 + digit;
    }
    return unit;
  }

  #hasUpperCase(at: number): boolean {
    for (let i = at + 2; i < at + 6; i++) {
      const code = this.bytes[i] as number;
      if (code >= 0x41 && code <= 0x46) return true;
    }
    return false;
  }

  /** Returns what is after the sequence that starts at `at`: the shortest form, no surrogates, up to U+10FFFF. */
  #multibyte(at: number): number {
    const { bytes } = this;
    const lead = bytes[at] as number;
    const second = bytes[at + 1] ?? 0;
    const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    let from = 0x80;
    let to = 0xbf;
    if (lead === 0xe0) from = 0xa0;
    else if (lead === 0xed) to = 0x9f;
    else if (lead === 0xf0) from = 0x90;
    else if (lead === 0xf4) to = 0x8f;
    let isWhole = lead >= 0xc2 && lead <= 0xf4 && second >= from && second <= to;
    for (let i = at + 2; i < at + length; i++) isWhole &&= ((bytes[i] ?? 0) & 0xc0) === 0x80;
    if (!isWhole) this.fail("bytes that are not UTF-8", at);
    return at + length;
  }
}

function isDigit(code: number | undefined): boolean {
  return code !== undefined && code >= 0x30 && code <= 0x39;
}

function hexDigit(code = 0): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

export function asciiText(bytes: Uint8Array, start: number, end: number): string {
  let text = "";
  for (let at = start; at < end; at++) text += String.fromCharCode(bytes[at] as number);
  return text;
}

export function areEqual(
  bytes: Uint8Array,
  start: number,
  end: number,
  other: Uint8Array,
  otherStart = 0,
  otherEnd = other.length,
): boolean {
  if (end - start !== otherEnd - otherStart) return false;
  for (let i = 0; i < end - start; i++) if (bytes[start + i] !== other[otherStart + i]) return false;
  return true;
}

function isBelow(bytes: Uint8Array, start: number, end: number, otherStart: number, otherEnd: number): boolean {
  const length = Math.min(end - start, otherEnd - otherStart);
  for (let i = 0; i < length; i++) {
    const difference = (bytes[start + i] as number) - (bytes[otherStart + i] as number);
    if (difference !== 0) return difference < 0;
  }
  return end - start < otherEnd - otherStart;
}
