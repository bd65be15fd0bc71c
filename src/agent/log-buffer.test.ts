import { describe, expect, it } from "vitest";
import { LOG_CHUNK_BYTES_MAX } from "../core/kit/limits.ts";
import { LOG_BUFFER_BYTES_MAX } from "./limits.ts";
import { LogBuffer, utf8Bytes } from "./log-buffer.ts";

const sizeOf = (text: string): number => new TextEncoder().encode(text).length;

describe("the log of one attempt", () => {
  it("counts bytes as UTF-8 has them", () => {
    for (const text of ["", "a", "é", "€", "😀", "a😀é€\u0000\uffff"]) expect(utf8Bytes(text)).toBe(sizeOf(text));
  });

  it("goes out in chunks that follow each other without a gap, and no character is cut in two", () => {
    const buffer = new LogBuffer();
    const text = `a${"😀é€x".repeat(30_000)}`;
    buffer.write(text);
    const sent: string[] = [];
    let end = 0;
    while (!buffer.isEmpty) {
      const chunks = buffer.take(100_000);
      for (const chunk of chunks) {
        expect(chunk.offset).toBe(end);
        expect(chunk.text.isWellFormed()).toBe(true);
        expect(sizeOf(chunk.text)).toBeLessThanOrEqual(LOG_CHUNK_BYTES_MAX);
        end += sizeOf(chunk.text);
        sent.push(chunk.text);
      }
      buffer.confirm(chunks);
    }
    expect(sent.join("")).toBe(text);
  });

  it("what is not confirmed goes out again as it was, and what is printed meanwhile comes behind it", () => {
    const buffer = new LogBuffer();
    buffer.write("one");
    const first = buffer.take(1_000);
    buffer.write("two");
    expect(buffer.take(1_000)).toEqual([...first, { offset: 3, text: "two" }]);
    buffer.confirm(first);
    expect(buffer.take(1_000)).toEqual([{ offset: 3, text: "two" }]);
    buffer.confirm(buffer.take(1_000));
    expect(buffer.isEmpty).toBe(true);
  });

  it("is bounded, and says what it left out", () => {
    const buffer = new LogBuffer();
    buffer.write("x".repeat(LOG_BUFFER_BYTES_MAX));
    buffer.write("lost");
    let printed = "";
    while (!buffer.isEmpty) {
      const chunks = buffer.take(LOG_CHUNK_BYTES_MAX);
      printed += chunks.map(({ text }) => text).join("");
      buffer.confirm(chunks);
    }
    expect(printed).toMatch(/\n\[4 bytes left out.*\]\n$/s);
    buffer.write("on");
    expect(buffer.take(1_000)[0]?.text).toBe("on");
  });

  it("half a surrogate pair becomes a replacement character", () => {
    const buffer = new LogBuffer();
    buffer.write("a\ud800");
    expect(buffer.take(10)).toEqual([{ offset: 0, text: "a\ufffd" }]);
  });
});

it("what was left out at the very end is said too, as soon as there is room", () => {
  const buffer = new LogBuffer();
  buffer.write("x".repeat(LOG_BUFFER_BYTES_MAX));
  buffer.write("the last words");
  expect(buffer.isEmpty).toBe(false);
  for (let turn = 0; turn < 1_000 && !buffer.isEmpty; turn++) {
    const chunks = buffer.take(64 * 1024);
    if (turn > 20) expect(chunks.at(-1)?.text).toContain("[14 bytes left out");
    buffer.confirm(chunks);
  }
  expect(buffer.isEmpty).toBe(true);
});
