// What `tenure run` says on stderr: one line for each event, for people or as JSON. Errors are said even when quiet.

import type { Logger } from "../../ports/logger.ts";

type Fields = Readonly<Record<string, string | number | boolean | null | undefined>>;
export type Event =
  | "waiting"
  | "leading"
  | "suspended"
  | "lost"
  | "stopping"
  | "restarting"
  | "ended"
  | "warning"
  | "error";

export interface NoticeOptions {
  readonly quiet: boolean;
  readonly json: boolean;
  readonly scope: string;
  readonly write: (line: string) => void;
}

export class Notices {
  readonly #options: NoticeOptions;

  constructor(options: NoticeOptions) {
    this.#options = options;
  }

  say(event: Event, message: string, fields: Fields = {}): void {
    const { quiet, json, scope, write } = this.#options;
    if (quiet && event !== "error") return;
    // A message of the world may have several lines; whoever reads the log counts on one.
    const line = message.replaceAll(/\s*\n\s*/g, " ");
    if (!json) return write(`tenure: ${event === "error" || event === "warning" ? "" : `${event}: `}${line}\n`);
    write(`${JSON.stringify({ at: new Date().toISOString(), event, scope, ...fields, message: line })}\n`);
  }

  /** The elector's own log: its transitions are told here in our words, its complaints are passed on. */
  logger(): Logger {
    const complain = (fields: Fields, message: string): void => this.say("warning", message, { code: fields["code"] });
    return { info: () => undefined, warn: complain, error: complain };
  }
}
