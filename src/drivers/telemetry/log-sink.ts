// Log lines as JSON, through pino. A line is handed over and forgotten: the writing happens on another thread, one write at
// a time, after a bounded buffer. When whoever reads the log stands still, lines are dropped and counted; consensus never waits
// for a terminal.
//
//   open ──close──▶ closed      what was buffered is written, for at most LOG_SINK_CLOSE_MS

import pino from "pino";
import type { LogFields, Logger } from "../../ports/logger.ts";
import { LOG_SINK_BYTES_MAX, LOG_SINK_CLOSE_MS, RECENT_CHARACTERS_MAX, RECENT_LINE_CHARACTERS_MAX } from "./limits.ts";

export interface LogSink {
  readonly logger: Logger;
  /** Written at any level: `log.level` must not silence who did what. */
  readonly audit: Logger;
  /** Lines lost because the reader of the log stood still. */
  dropped(): number;
  /** The last lines, oldest first, also those that were dropped; at most RECENT_CHARACTERS_MAX in all. */
  recent(): readonly string[];
  close(): Promise<void>;
}

export interface LogSinkOptions {
  readonly level: "trace" | "debug" | "info" | "warn" | "error" | "silent";
  /** A file's path, or a descriptor; standard error where it is left out: standard output belongs to commands. */
  readonly destination?: string | number | undefined;
  /** On every line. */
  readonly fields?: LogFields | undefined;
  readonly bufferBytesMax?: number | undefined;
}

const STDERR = 2;

export function openLogSink(options: LogSinkOptions): LogSink {
  const { level, destination = STDERR, fields = {}, bufferBytesMax = LOG_SINK_BYTES_MAX } = options;
  const stream = pino.destination({ dest: destination, sync: false, maxLength: bufferBytesMax });
  let dropped = 0;
  stream.on("drop", () => dropped++);
  // A closed pipe or a full disk: there is nowhere left to say it.
  stream.on("error", () => dropped++);
  const recent = new RecentLines();
  const both = {
    write: (line: string): void => {
      recent.add(line);
      stream.write(line);
    },
  };
  const root = pino({ level, base: fields, timestamp: pino.stdTimeFunctions.isoTime }, both);
  const audit = root.child({}, { level: "info" });
  return {
    logger: portOf(root),
    audit: portOf(audit),
    dropped: () => dropped,
    recent: () => recent.all(),
    close: () => ended(stream),
  };
}

/** A queue that forgets its oldest lines. Those that are forgotten leave the array when they are half of it. */
class RecentLines {
  readonly #lines: string[] = [];
  #first = 0;
  #characters = 0;

  add(line: string): void {
    const text = line.trimEnd();
    const kept = text.length <= RECENT_LINE_CHARACTERS_MAX ? text : `${text.slice(0, RECENT_LINE_CHARACTERS_MAX)}…`;
    this.#lines.push(kept);
    this.#characters += kept.length;
    while (this.#characters > RECENT_CHARACTERS_MAX) this.#characters -= this.#lines[this.#first++]!.length;
    if (this.#first * 2 > this.#lines.length) {
      this.#lines.splice(0, this.#first);
      this.#first = 0;
    }
  }

  all(): readonly string[] {
    return this.#lines.slice(this.#first);
  }
}

function portOf(logger: pino.Logger): Logger {
  return {
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
  };
}

function ended(stream: ReturnType<typeof pino.destination>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      stream.destroy();
      resolve();
    }, LOG_SINK_CLOSE_MS);
    stream.once("close", () => {
      clearTimeout(timer);
      resolve();
    });
    stream.end();
  });
}
