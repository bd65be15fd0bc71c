// How a handler ended, as the cluster is told. To return is to say that the work is done, whatever was asked meanwhile; to
// throw is to say that it is not, and then it matters why the attempt was aborted, if it was.

import { assertNever } from "../core/kit/assert.ts";
import { JOB_ERROR_BYTES_MAX, JOB_PAYLOAD_BYTES_MAX } from "../core/kit/limits.ts";
import type { Json } from "../core/kit/json.ts";
import { parseJson } from "../core/kit/parse-json.ts";
import { messageOf } from "../core/kit/user-code.ts";
import type { ResultCall } from "../ports/jobs.ts";
import { ERROR_NAME_LETTERS_MAX } from "./limits.ts";
import { utf8Bytes } from "./log-buffer.ts";

export type Outcome = ResultCall["outcome"];

/** Thrown by a handler to say whether it is worth another attempt, and anything that helps whoever looks. */
export class JobError extends Error {
  readonly retry: boolean;
  readonly detail: Json;

  constructor(
    message: string,
    options: {
      readonly retry?: boolean | undefined;
      readonly detail?: Json | undefined;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "JobError";
    this.retry = options.retry ?? true;
    this.detail = options.detail ?? null;
  }
}

/**
 * `cancelled`: somebody asked for it. `timed-out`: the attempt took longer than the job allows. `lease-lost`: the job may
 * be another agent's. `stopping`: this agent ends.
 */
export type AbortReason = "cancelled" | "timed-out" | "lease-lost" | "stopping";

/** The reason of an aborted `signal`. */
export class JobAborted extends Error {
  readonly reason: AbortReason;

  constructor(reason: AbortReason, message: string) {
    super(message);
    // As everything that takes a signal calls it.
    this.name = "AbortError";
    this.reason = reason;
  }
}

/** Never throws: what a handler returns is its own, with getters and a `toJSON` that may do anything. */
export function outcomeOfReturn(value: unknown): Outcome {
  const read = readJson(value);
  return "problem" in read
    ? failure(`The handler returned ${read.problem}`, null, false)
    : { kind: "completed", ...read };
}

/** Never throws, whatever was thrown. */
export function outcomeOfThrow(thrown: unknown, abortedBy: JobAborted | null): Outcome {
  try {
    return readThrown(thrown, abortedBy);
  } catch {
    return failure("The handler threw what can't be read.", null, true);
  }
}

function readThrown(thrown: unknown, abortedBy: JobAborted | null): Outcome {
  // A handler may also end by itself for such a reason.
  const aborted = abortedBy ?? (thrown instanceof JobAborted ? thrown : null);
  switch (aborted?.reason) {
    case "cancelled":
      return { kind: "cancelled" };
    case "lease-lost":
    case "stopping":
      return { kind: "handed-back" };
    case "timed-out":
      return failure(messageOf(aborted), null, true);
    case undefined:
      break;
    default:
      return assertNever(aborted as never, "abort reason");
  }
  if (isJobError(thrown)) return failure(messageOf(thrown), thrown.detail, thrown.retry);
  const name = String(thrown instanceof Error ? (thrown.name as unknown) : typeof thrown);
  return failure(messageOf(thrown), { name: name.slice(0, ERROR_NAME_LETTERS_MAX).toWellFormed() }, true);
}

/** The cluster would not have the result itself: the reason is the result then, and the same work would end the same. */
export function refusedOutcome(why: string): Outcome {
  return failure(`The cluster refused this attempt's result: ${why}`, null, false);
}

function failure(message: string, detail: unknown, retry: boolean): Outcome {
  const read = readJson(detail);
  return {
    kind: "failed",
    error: { message: clipped(message), detail: "problem" in read ? null : read.result },
    retry,
  };
}

/** As plain JSON of its own: what the user holds may change, and its getters run once. Never throws. */
function readJson(value: unknown): { readonly result: Json } | { readonly problem: string } {
  try {
    const text = JSON.stringify(value ?? null) as string | undefined;
    if (text === undefined) return { problem: `a ${typeof value}, which JSON can't say.` };
    const bytes = utf8Bytes(text);
    if (bytes <= JOB_PAYLOAD_BYTES_MAX) return { result: parseJson(text) as Json };
    return {
      problem: `${bytes} bytes of JSON; at most ${JOB_PAYLOAD_BYTES_MAX}. Store it elsewhere and return where.`,
    };
  } catch (error) {
    return { problem: `what JSON can't say: ${messageOf(error)}` };
  }
}

/** Of another copy of this package too. */
function isJobError(error: unknown): error is JobError {
  return error instanceof Error && error.name === "JobError" && typeof (error as JobError).retry === "boolean";
}

function clipped(text: string): string {
  // No letter has less than a byte: of a text of any length only so much is looked at.
  const start = text.slice(0, JOB_ERROR_BYTES_MAX).toWellFormed();
  if (start.length === text.length && utf8Bytes(start) <= JOB_ERROR_BYTES_MAX) return start;
  return start.slice(0, Math.floor(JOB_ERROR_BYTES_MAX / 3) - 1).toWellFormed();
}
