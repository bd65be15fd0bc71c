// What an elector is created with, checked at once: a wrong scope must not become a lock that nobody shares.

import { TenureError } from "../core/kit/errors.ts";
import { SCOPE_BYTES_MAX, SCOPE_IDENTITY_BYTES_MAX, SCOPE_METADATA_BYTES_MAX } from "../core/kit/limits.ts";
import { harmlessly } from "../core/kit/user-code.ts";
import type { Transition } from "../core/trust/transitions.ts";
import type { Backend } from "../ports/backends/backend.ts";
import type { Logger } from "../ports/logger.ts";

export interface ElectorOptions<Extras extends object = object> {
  /** What is led. Instances that compete write the same text. */
  readonly scope: string;
  readonly backend: Backend<Extras>;
  /** Who this instance is, for people. Default `<scope>-<host>-<pid>-<uuid>`. */
  readonly identity?: string | undefined;
  /** What observers are told next to the identity: an address, a version. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** False: a permanent follower, which observes and never leads. */
  readonly enabled?: boolean | undefined;
  /** Default: nothing but one warning of the process for each kind of trouble. */
  readonly logger?: Logger | undefined;
  /** Called for each transition, in order; none is dropped. */
  readonly onTransition?: ((transition: Transition) => void) | undefined;
}

/** A warning of the process: what happened, and its code where it has one. */
export type Warn = (message: string, code: string | undefined) => void;

/**
 * For who gives no logger: trouble must not be silent (a wrong port would wait for ever without a word), nor fill a
 * terminal. One warning for each kind, which is the message up to its colon.
 */
function warnings(scope: string, warn: Warn): Logger {
  const said = new Set<string>();
  const once: Logger["warn"] = ({ code }, message) => {
    const [kind = ""] = message.split(":", 1);
    if (said.has(kind)) return;
    said.add(kind);
    const text = `scope "${scope}": ${message} (Said once for this elector: createElector({ logger }) is given everything.)`;
    warn(text, typeof code === "string" ? code : undefined);
  };
  return { info: () => {}, warn: once, error: once };
}

/** A logger that throws, now or later (its disk is full, its stream is closed), must not leave a term half ended. */
function harmless(logger: Logger): Logger {
  const guard =
    (level: keyof Logger): Logger["info"] =>
    (fields, message) =>
      harmlessly(() => logger[level](fields, message));
  return { info: guard("info"), warn: guard("warn"), error: guard("error") };
}

export function checkOptions<Extras extends object>(options: ElectorOptions<Extras>, uuid: () => string, warn: Warn) {
  const { scope, backend, metadata = {}, enabled = true, onTransition } = options;
  checkText("scope", scope, SCOPE_BYTES_MAX);
  if (typeof backend?.seat !== "function") {
    refuse("backend", 'must be a backend, such as postgres(url) from "tenure/postgres"');
  }
  const identity = options.identity ?? `${scope}-${backend.host}-${uuid()}`;
  checkText("identity", identity, SCOPE_IDENTITY_BYTES_MAX);
  if (typeof metadata !== "object" || metadata === null) refuse("metadata", "must be an object of texts");
  for (const [name, value] of Object.entries(metadata)) {
    checkText(`metadata.${name}`, value, SCOPE_METADATA_BYTES_MAX, 0);
  }
  if (byteLength(JSON.stringify(metadata)) > SCOPE_METADATA_BYTES_MAX) {
    refuse("metadata", `must have at most ${SCOPE_METADATA_BYTES_MAX} bytes as JSON`);
  }
  if (typeof enabled !== "boolean") refuse("enabled", "must be true or false");
  // In virtual time a fault is the test's own, and no news.
  const logger = options.logger ?? warnings(scope, backend.clock === undefined ? warn : () => undefined);
  return { scope, backend, identity, metadata: { ...metadata }, enabled, logger: harmless(logger), onTransition };
}

function checkText(name: string, value: unknown, bytesMax: number, bytesMin = 1): void {
  if (typeof value !== "string") refuse(name, "must be a text");
  // A lone surrogate becomes U+FFFD in UTF-8, and two scopes would become one.
  if (!value.isWellFormed() || value.includes("\0")) refuse(name, "must be well-formed text without NUL");
  const bytes = byteLength(value);
  if (bytes < bytesMin) refuse(name, "must not be empty: instances compete by writing the same name");
  if (bytes > bytesMax) refuse(name, `must have at most ${bytesMax} bytes, and has ${bytes}`);
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

function refuse(name: string, why: string): never {
  throw new TenureError("CONFIG_INVALID", `createElector: ${name} ${why}.`);
}
