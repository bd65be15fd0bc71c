// Reads a stored event where it lies: whether its bytes are the canonical form of a well-formed event, and the fields that
// the chain is made of. It accepts exactly what `decodeEvent` accepts and `canonicalJson` would write again (a property test
// compares them), and builds nothing, so that a whole archive is verified in minutes.

import {
  ENTRY_BYTES_MAX,
  EVENT_DEPTH_MAX,
  EVENT_ENTITY_BYTES_MAX,
  EVENT_ID_BYTES_MAX,
  EVENT_SOURCE_BYTES_MAX,
} from "../kit/limits.ts";
import { isTimestamp } from "./event.ts";
import { HASH_BYTES } from "./hex.ts";
import { areEqual, asciiText, JsonError, JsonScanner } from "./json-scanner.ts";
import { WORD_BYTES_MAX } from "./limits.ts";

const HASH_DIGITS = 2 * HASH_BYTES;
const QUOTE = 0x22;
const COLON = 0x3a;
const LETTER_A = 0x61;

const textEncoder = new TextEncoder();
const ENTITY_ID = textEncoder.encode('{"entityId":');
const ID = textEncoder.encode(',"id":');
const LEADER_EPOCH = textEncoder.encode(',"leaderEpoch":');
const PAYLOAD = textEncoder.encode(',"payload":');
const PREVIOUS_HASH = textEncoder.encode(',"previousHash":');
const NULL = textEncoder.encode("null");
const SEQUENCE = textEncoder.encode(',"sequence":');
const SOURCE = textEncoder.encode(',"sourceControllerId":');
const TIMESTAMP = textEncoder.encode(',"timestamp":');

const ENTITY_TYPE = textEncoder.encode(',"entityType":"');
const EVENT_TYPE = textEncoder.encode('","eventType":"');

const IS_HEX = Uint8Array.from({ length: 256 }, (_, byte) => (/[0-9a-f]/.test(String.fromCharCode(byte)) ? 1 : 0));
const IS_IN_WORD = Uint8Array.from({ length: 256 }, (_, byte) => (/[a-z0-9-]/.test(String.fromCharCode(byte)) ? 1 : 0));

export class EventScanner extends JsonScanner {
  sequence = 0;
  timestamp = 0;
  /** Where the digits of `previousHash` start; -1 where it is null. */
  previousHashAt = -1;
  /** Where these begin and end, without their quotes. */
  #entityAt = 0;
  #entityEnd = 0;
  #typeAt = 0;
  #typeEnd = 0;
  #sourceAt = 0;
  #sourceEnd = 0;

  constructor() {
    super(new Uint8Array(0), EVENT_DEPTH_MAX, "canonical");
  }

  /** Null where the bytes are those of an event; its fields are then in this object until the next call. */
  scan(bytes: Uint8Array): string | null {
    this.reset(bytes);
    try {
      this.#event();
      return null;
    } catch (error) {
      if (error instanceof JsonError) return error.message;
      throw error;
    }
  }

  get eventType(): string {
    return asciiText(this.bytes, this.#typeAt, this.#typeEnd);
  }

  get entityId(): string {
    return this.textBetween(this.#entityAt, this.#entityEnd);
  }

  /** Whether `sourceControllerId` is spelt with exactly these bytes. */
  hasSource(source: Uint8Array): boolean {
    return areEqual(this.bytes, this.#sourceAt, this.#sourceEnd, source);
  }

  #event(): void {
    if (this.bytes.length > ENTRY_BYTES_MAX) this.fail(`more than ${ENTRY_BYTES_MAX} bytes`, ENTRY_BYTES_MAX);
    this.#expect(ENTITY_ID, "entityId");
    this.#entityAt = this.at + 1;
    this.#text(EVENT_ENTITY_BYTES_MAX);
    this.#entityEnd = this.at - 1;
    this.#kinds();
    this.#expect(ID, "id");
    this.#text(EVENT_ID_BYTES_MAX);
    this.#expect(LEADER_EPOCH, "leaderEpoch");
    this.#positive();
    this.#expect(PAYLOAD, "payload");
    if (this.bytes[this.at] !== 0x7b) this.fail("a payload that is not an object");
    this.object(2);
    this.#expect(PREVIOUS_HASH, "previousHash");
    this.#hash();
    this.#expect(SEQUENCE, "sequence");
    this.sequence = this.#positive();
    if (this.previousHashAt < 0 !== (this.sequence === 1))
      this.fail("a previousHash that is null for another than sequence 1");
    this.#expect(SOURCE, "sourceControllerId");
    this.#sourceAt = this.at + 1;
    this.#text(EVENT_SOURCE_BYTES_MAX);
    this.#sourceEnd = this.at - 1;
    this.#expect(TIMESTAMP, "timestamp");
    const from = this.at;
    if (!isNumberAt(this.bytes[from])) this.fail("a timestamp that is not a number");
    this.timestamp = this.number();
    if (!isTimestamp(this.timestamp)) this.fail("a timestamp that is not a positive number of milliseconds", from);
    if (this.bytes[this.at] !== 0x7d) this.fail("an unknown field");
    this.at++;
    if (this.at < this.bytes.length) this.fail("something follows the event");
  }

  #expect(text: Uint8Array, field: string): void {
    if (!this.startsWith(text)) this.fail(`${field} was expected`);
    this.at += text.length;
  }

  /** The two types stand side by side, and the second begins with the first. */
  #kinds(): void {
    this.#expect(ENTITY_TYPE, "entityType");
    const from = this.at;
    this.#word();
    const entity = this.bytes.subarray(from, this.at);
    this.#expect(EVENT_TYPE, "eventType");
    this.#typeAt = this.at;
    this.#expect(entity, "the entity's type");
    if (this.bytes[this.at++] !== COLON) this.fail("the entity's type and a colon were expected", this.at - 1);
    this.#word();
    this.#typeEnd = this.at;
    if (this.bytes[this.at++] !== QUOTE) this.fail("the end of eventType was expected", this.at - 1);
  }

  #word(): void {
    const from = this.at;
    while (IS_IN_WORD[this.bytes[this.at] ?? 0] === 1) this.at++;
    const isWord = this.at > from && this.at - from <= WORD_BYTES_MAX && (this.bytes[from] as number) >= LETTER_A;
    if (!isWord) this.fail("a word of lower-case letters, digits and hyphens was expected", from);
  }

  #text(bytesMax: number): void {
    const from = this.at;
    if (this.bytes[from] !== QUOTE) this.fail("a text was expected");
    this.string();
    const start = from + 1;
    const end = this.at - 1;
    // With escapes the text is shorter than its bytes here.
    const length =
      this.plain || end - start <= bytesMax ? end - start : textEncoder.encode(this.textBetween(start, end)).length;
    if (length === 0 || length > bytesMax) this.fail(`a text of 1 to ${bytesMax} bytes was expected`, from);
  }

  #positive(): number {
    const from = this.at;
    if (!isNumberAt(this.bytes[from])) this.fail("a positive integer was expected");
    const value = this.number();
    if (!Number.isSafeInteger(value) || value < 1) this.fail("a positive integer was expected", from);
    return value;
  }

  #hash(): void {
    const { bytes, at } = this;
    if (bytes[at] !== QUOTE) {
      this.#expect(NULL, "null or a hash");
      this.previousHashAt = -1;
      return;
    }
    let digits = 0;
    while (digits < HASH_DIGITS && IS_HEX[bytes[at + 1 + digits] ?? 0] === 1) digits++;
    if (digits < HASH_DIGITS || bytes[at + 1 + HASH_DIGITS] !== QUOTE) this.fail("a hash was expected");
    this.previousHashAt = at + 1;
    this.at = at + HASH_DIGITS + 2;
  }
}

function isNumberAt(code: number | undefined): boolean {
  return code !== undefined && (code === 0x2d || (code >= 0x30 && code <= 0x39));
}
