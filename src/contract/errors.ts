// The registry of errors as clients meet it: what a server answers with a code is thrown as the same TenureError.

export { assertNever } from "../core/kit/assert.ts";
export { type ErrorCode, ERRORS, TenureError } from "../core/kit/errors.ts";
