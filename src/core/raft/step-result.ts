// The two answers of a step: taken, or refused with a code of the registry, a reason and what to do next.

import type { ErrorCode } from "../kit/errors.ts";
import type { StepResult } from "./types.ts";

export type Refusal = StepResult & { readonly ok: false };

export const ACCEPTED: StepResult = { ok: true, index: 0, term: 0 };

export function refused(code: ErrorCode, message: string): Refusal {
  return { ok: false, code, message };
}
