// API keys that the cluster keeps: made here, and only their hash travels. A key is shown once, to whoever made it.

import { TenureError } from "../contract/errors.ts";
import type { Caller, CallOptions, ReadOptions } from "./caller.ts";
import { readQuery } from "./caller.ts";
import type { KeyRole, KeyView } from "./job-views.ts";

/** A key that nobody knows of yet. */
export interface NewKey {
  /** What a caller sends as X-API-Key. */
  readonly secret: string;
  /** All that a server ever keeps of it: SHA-256, lower-case hex. */
  readonly sha256: string;
}

export interface ClientKeys {
  list(options?: ReadOptions): Promise<readonly KeyView[]>;
  /** `key` of the answer is the secret itself: keep it, nobody can show it again. A random one, unless you bring yours. */
  create(
    request: { readonly name: string; readonly role: KeyRole },
    options?: CallOptions & { readonly key?: NewKey | undefined },
  ): Promise<KeyView & { readonly key: string }>;
  revoke(name: string, options?: CallOptions): Promise<void>;
}

const KEY_BYTES = 32;

export function keysOf(caller: Caller): ClientKeys {
  return {
    list: async (options = {}) =>
      (await caller.readJson<{ keys: readonly KeyView[] }>(`/v1/keys${readQuery(options)}`, options)).keys,
    create: async ({ name, role }, options = {}) => {
      const { secret: key, sha256 } = options.key ?? (await newKey());
      const body = { name, role, sha256 };
      // The very same key once more is no error, so this may be repeated.
      const request = { method: "POST", path: "/v1/keys", body, isIdempotent: true } as const;
      return { ...(await caller.bodyOf<KeyView>(await caller.mutate(request, options))), key };
    },
    revoke: async (name, options = {}) => {
      const request = { method: "DELETE", path: `/v1/keys/${encodeURIComponent(name)}`, isIdempotent: true } as const;
      try {
        await caller.bodyOf(await caller.mutate(request, options));
      } catch (error) {
        // The key is gone, and an earlier attempt of this very call may have done it: that is what was asked for.
        const isGone = TenureError.is(error) && TenureError.is(error.cause) && error.cause.code === "NOT_FOUND";
        if (!isGone || error.code !== "OUTCOME_UNKNOWN") throw error;
      }
    },
  };
}

export async function newKey(): Promise<NewKey> {
  const secret = hexOf(crypto.getRandomValues(new Uint8Array(KEY_BYTES)));
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(secret));
  return { secret, sha256: hexOf(new Uint8Array(hash)) };
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
