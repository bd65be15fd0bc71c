// How a handler ended, as the cluster is told. To return is to say that the work is done, whatever was asked meanwhile; to
// throw is to say that it is not, and then it matters why the attempt was aborted, if it was.

import { assertNever } from "../core/kit/assert.ts";
import { JOB_ERROR_BYTES_MAX, JOB_PAYLOAD_BYTES_MAX } from "../core/kit/limits.ts";
import type { Json } from "../core/kit/json.ts";
import { parseJson } from "../core/kit/parse-json.ts";
import type { ResultCall } from "../ports/jobs.ts";
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

const NAME_LETTERS_MAX = 200;

export function outcomeOfReturn(value: unknown): Outcome {
  let text: string | undefined;
  try {
    text = JSON.stringify(value ?? null) as string | undefined;
  } catch (error) {
    return failure(`The handler returned what JSON can't say: ${messageOf(error)}`, null, false);
  }
  if (text === undefined) return failure(`The handler returned a ${typeof value}, which JSON can't say.`, null, false);
  const bytes = utf8Bytes(text);
  if (bytes > JOB_PAYLOAD_BYTES_MAX) {
    const message = `The handler returned ${bytes} bytes of JSON; at most ${JOB_PAYLOAD_BYTES_MAX}. Store it elsewhere and return where.`;
    return failure(message, null, false);
  }
  return { kind: "completed", result: parseJson(text) as Json };
}

export function outcomeOfThrow(error: unknown, abortedBy: JobAborted | null): Outcome {
  // A handler may also end by itself for such a reason.
  const aborted = abortedBy ?? (error instanceof JobAborted ? error : null);
  switch (aborted?.reason) {
    case "cancelled":
      return { kind: "cancelled" };
    case "lease-lost":
    case "stopping":
      return { kind: "handed-back" };
    case "timed-out":
      return failure(aborted.message, null, true);
    case undefined:
      break;
    default:
      return assertNever(aborted as never, "abort reason");
  }
  if (isJobError(error)) return failure(error.message, error.detail, error.retry);
  const name = error instanceof Error ? error.name : typeof error;
  return failure(messageOf(error), { name: name.slice(0, NAME_LETTERS_MAX).toWellFormed() }, true);
}

/** The cluster would not have the result itself: the reason is the result then, and the same work would end the same. */
export function refusedOutcome(why: string): Outcome {
  return failure(`The cluster refused this attempt's result: ${why}`, null, false);
}

function failure(message: string, detail: Json, retry: boolean): Outcome {
  const isFitting = outcomeOfReturn(detail).kind === "completed";
  return {
    kind: "failed",
    error: { message: clipped(message.toWellFormed()), detail: isFitting ? detail : null },
    retry,
  };
}

/** Of another copy of this package too. */
function isJobError(error: unknown): error is JobError {
  return error instanceof Error && error.name === "JobError" && typeof (error as JobError).retry === "boolean";
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function clipped(text: string): string {
  if (utf8Bytes(text) <= JOB_ERROR_BYTES_MAX) return text;
  return text.slice(0, Math.floor(JOB_ERROR_BYTES_MAX / 3) - 1).toWellFormed();
}
