// The last line with anything on it of what was written, in bounded memory: mostly the one that says why a command failed.

const LETTERS_MAX = 500;

export class LastLine {
  #line = "";
  #open = "";

  write(text: string): void {
    const lines = (this.#open + text).split(/[\r\n]+/);
    this.#open = (lines.pop() ?? "").slice(-LETTERS_MAX);
    const whole = lines.findLast((line) => line.trim() !== "");
    if (whole !== undefined) this.#line = whole.slice(-LETTERS_MAX);
  }

  get text(): string {
    return (this.#open.trim() === "" ? this.#line : this.#open).trim();
  }
}
