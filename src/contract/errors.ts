// The registry of errors as clients meet it: what a server answers with a code is thrown as the same TenureError. And how
// options that do not exist are refused with one, and what anything that was thrown says.

export { assertNever } from "../core/kit/assert.ts";
export { type ErrorCode, ERRORS, TenureError } from "../core/kit/errors.ts";
export { refuseUnknownOptions } from "../core/kit/options.ts";
export { messageOf } from "../core/kit/user-code.ts";
