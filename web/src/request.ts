// One request to one node, with the reader's key, and what it answered. Redirects are not followed: the key goes where it was
// sent, and nowhere else.

import { toCamel } from "../../src/contract/snake-case.ts";
import { key } from "./page.ts";

export const READ_LIMIT_MS = 8_000;

export function ask(url: string, path: string, limitMs: number, ended?: AbortSignal): Promise<Response> {
  const limit = AbortSignal.timeout(limitMs);
  return fetch(url + path, {
    headers: { accept: "application/json", ...(key.value === "" ? {} : { "x-api-key": key.value }) },
    redirect: "error",
    cache: "no-store",
    signal: ended === undefined ? limit : AbortSignal.any([limit, ended]),
  });
}

export class ApiError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export async function errorIn(response: Response): Promise<{ readonly code: string; readonly message: string }> {
  const body = (await response.json().catch(() => ({}))) as { error?: unknown; message?: unknown };
  const code = typeof body.error === "string" ? body.error : `HTTP ${response.status}`;
  return { code, message: typeof body.message === "string" ? body.message : code };
}

/** At this node alone. */
export async function readAt<T>(url: string, path: string, limitMs: number, ended?: AbortSignal): Promise<T> {
  return toCamel(await bodyAt(url, path, limitMs, ended)) as T;
}

/** As it is on the wire: what is not one of our answers is deeper than they may be. */
export async function bodyAt(url: string, path: string, limitMs: number, ended?: AbortSignal): Promise<object> {
  return (await (await answerAt(url, path, limitMs, ended)).json()) as object;
}

export async function textAt(url: string, path: string, limitMs: number, ended?: AbortSignal): Promise<string> {
  return await (await answerAt(url, path, limitMs, ended)).text();
}

async function answerAt(url: string, path: string, limitMs: number, ended?: AbortSignal): Promise<Response> {
  const response = await ask(url, path, limitMs, ended);
  if (response.ok) return response;
  const { code, message } = await errorIn(response);
  throw new ApiError(code, message);
}
