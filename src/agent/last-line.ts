// The last line with anything on it of what was written, in bounded memory: mostly the one that says why a command failed.

import { LAST_LINE_LETTERS_MAX } from "./limits.ts";

export class LastLine {
  #line = "";
  #open = "";

  write(text: string): void {
    const lines = (this.#open + text).split(/[\r\n]+/);
    this.#open = (lines.pop() ?? "").slice(-LAST_LINE_LETTERS_MAX);
    const whole = lines.findLast((line) => line.trim() !== "");
    if (whole !== undefined) this.#line = whole.slice(-LAST_LINE_LETTERS_MAX);
  }

  get text(): string {
    return (this.#open.trim() === "" ? this.#line : this.#open).trim();
  }
}
