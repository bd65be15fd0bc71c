// Cuts a stream of bytes into lines: one JSON message each. Chunks end wherever the network ended them, inside a message or
// inside a character. A line that grows past the bound throws: what comes is not what was asked for.

const NEWLINE = 10;

export class LineSplitter {
  readonly #bytesMax: number;
  #parts: Uint8Array[] = [];
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The lines that this chunk completes, without empty ones. */
  push(chunk: Uint8Array): string[] {
    const lines: string[] = [];
    let rest = chunk;
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      this.#keep(rest.subarray(0, end));
      lines.push(this.#take());
      rest = rest.subarray(end + 1);
    }
    this.#keep(rest);
    return lines.filter((line) => line.trim() !== "");
  }

  #keep(part: Uint8Array): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#bytesMax) throw new RangeError(`a message of more than ${this.#bytesMax} bytes`);
    if (part.length > 0) this.#parts.push(part);
  }

  #take(): string {
    const line = Buffer.concat(this.#parts).toString("utf8");
    this.#parts = [];
    this.#bytes = 0;
    return line;
  }
}
