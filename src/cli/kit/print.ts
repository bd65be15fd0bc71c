// What a command writes to the streams of its process.

import { type Paint, paintFor } from "./colour.ts";
import { warningText } from "./complaint.ts";

/** On stdout; the exit code of a command that has ended well. */
export function printed(text: string): number {
  process.stdout.write(text);
  return 0;
}

/** The colours that stdout shows. */
export function stdoutPaint(): Paint {
  return paintFor(process.stdout, process.env);
}

/** On stderr, for people; programs read stdout. */
export function warn(text: string): void {
  process.stderr.write(warningText(text, paintFor(process.stderr, process.env)));
}

/** Until stdout has room again. Rejects when the signal aborts. */
export async function drained(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = (): void => {
      process.stdout.off("drain", end);
      signal.removeEventListener("abort", end);
      resolve();
    };
    process.stdout.on("drain", end);
    signal.addEventListener("abort", end);
  });
  signal.throwIfAborted();
}
