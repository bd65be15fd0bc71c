// The package `pg`, an optional peer: loaded when the first session opens, so that `import "tenure/postgres"` works
// without it for those who bring their own `connect`.

import type { Client, Pool } from "pg";
import { TenureError } from "../../core/kit/errors.ts";

export async function loadPg(): Promise<{ readonly Client: typeof Client; readonly Pool: typeof Pool }> {
  try {
    const module = await import("pg");
    // Older releases are CommonJS only, where Node does not always see the named exports.
    return module.default ?? module;
  } catch (error) {
    if (!isMissing(error)) throw error;
    const message = 'the package "pg" is not installed, and a Postgres URL needs it. Run: npm install pg';
    throw new TenureError("CONFIG_INVALID", message, { cause: error });
  }
}

function isMissing(error: unknown): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    (error.code === "ERR_MODULE_NOT_FOUND" || error.code === "MODULE_NOT_FOUND") &&
    /['"]pg['"]/.test(error.message)
  );
}
