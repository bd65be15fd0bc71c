// The file format of a golden transcript, that of the datadriven tests which etcd and CockroachDB use:
//
//   # a comment for the reader
//   one or more command lines
//   ----
//   what they must print, up to the next blank line
//
// A file is kept as it is read, so that rewriting changes expected outputs and nothing else.

export interface Block {
  /** Comments and blank lines in front of the commands. */
  readonly preface: readonly string[];
  readonly commands: readonly string[];
  readonly expected: string;
  /** Where the commands start, counted from 1. */
  readonly line: number;
}

const SEPARATOR = "----";

export function parseScript(text: string): { readonly blocks: readonly Block[]; readonly epilogue: readonly string[] } {
  const lines = text.replace(/\n$/, "").split("\n");
  const blocks: Block[] = [];
  let at = 0;
  for (;;) {
    const preface: string[] = [];
    while (at < lines.length && isPreface(lines[at]!)) preface.push(lines[at++]!);
    if (at >= lines.length) return { blocks, epilogue: preface };
    const line = at + 1;
    const commands: string[] = [];
    while (at < lines.length && lines[at] !== SEPARATOR) commands.push(lines[at++]!);
    if (at >= lines.length) throw new Error(`line ${line}: commands without a "${SEPARATOR}" line behind them`);
    if (commands.includes("")) throw new Error(`line ${line}: a blank line stands between commands and "${SEPARATOR}"`);
    at++;
    const expected: string[] = [];
    while (at < lines.length && lines[at] !== "") expected.push(lines[at++]!);
    blocks.push({ preface, commands, expected: expected.join("\n"), line });
  }
}

export function printScript(blocks: readonly Block[], epilogue: readonly string[]): string {
  const lines: string[] = [];
  for (const { preface, commands, expected } of blocks) {
    if (lines.length > 0 && preface[0] !== "") lines.push("");
    lines.push(...preface, ...commands, SEPARATOR, expected);
  }
  return `${[...lines, ...epilogue].join("\n")}\n`;
}

function isPreface(line: string): boolean {
  return line === "" || line.startsWith("#");
}

export interface Command {
  readonly name: string;
  readonly words: readonly string[];
  /** `key=value` and `key=(a,b)`. */
  readonly options: ReadonlyMap<string, readonly string[]>;
  /** Written with `quiet` in front: it must work, but what it prints is of no interest. */
  readonly quiet: boolean;
}

export function parseCommand(line: string): Command {
  const tokens = line.trim().split(/\s+/);
  const quiet = tokens[0] === "quiet";
  const [name = "", ...rest] = quiet ? tokens.slice(1) : tokens;
  const words: string[] = [];
  const options = new Map<string, readonly string[]>();
  for (const token of rest) {
    const option = /^([A-Za-z-]+)=(.*)$/.exec(token);
    if (option === null) words.push(token);
    else options.set(option[1]!, listOf(option[2]!));
  }
  return { name, words, options, quiet };
}

function listOf(value: string): readonly string[] {
  const inner = value.replace(/^\((.*)\)$/, "$1");
  return inner === "" ? [] : inner.split(",");
}
