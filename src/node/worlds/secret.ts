// The secret by which the nodes of one machine know each other where they speak without TLS: a file that its user alone can
// read. The first node that needs it makes it; the others, of the same user, find it at the same place. Whoever can't read
// the file can't speak as a node, although loopback is open to every user of the machine.
//
// Invariant: a secret that others may read is refused, not used.

import { randomBytes } from "node:crypto";
import { linkSync, lstatSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { TenureError } from "../../core/kit/errors.ts";
import { makeDirectories } from "../../drivers/disk/directories.ts";
import type { Logger } from "../../ports/logger.ts";
import { SECRET_TEXT_BYTES_MIN } from "./limits.ts";

const SECRET_BYTES = 32;
const OTHERS = 0o077;

interface SecretOptions {
  /** `peer.secret_file`; null: the user's own place. */
  readonly file: string | null;
  /** Nobody else is to be dialled: where no file can be kept, this node needs none. */
  readonly isAlone: boolean;
  readonly logger: Logger;
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
}

export function peerSecret({ file, isAlone, logger, environment = process.env }: SecretOptions): Uint8Array {
  const path = file ?? defaultSecretFile(environment);
  try {
    make(path);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    if (file === null && isAlone) {
      const text = `no secret for other nodes of this machine can be kept at ${path} (${why}): none can join without TLS. Name a place in peer.secret_file`;
      logger.warn({ event: "peer-secret" }, text);
      return randomBytes(SECRET_BYTES);
    }
    const text = `the secret that the nodes of this machine share can't be kept at ${path} (${why}). Name a file that this user can write and nobody else can read in peer.secret_file, the same for all nodes, or use peer.tls.`;
    throw new TenureError("CONFIG_INVALID", text, { cause: error });
  }
  return read(path);
}

function defaultSecretFile(environment: Readonly<Record<string, string | undefined>>): string {
  const state = environment["XDG_STATE_HOME"];
  const folder = state !== undefined && state.startsWith("/") ? state : join(homedir(), ".local", "state");
  return join(folder, "tenure", "peer-secret");
}

/** Whole or not at all, and only once: of several nodes that start together, all get the secret of the first. */
function make(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return;
  makeDirectories(dirname(path), 0o700);
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    writeFileSync(draft, `${randomBytes(SECRET_BYTES).toString("hex")}\n`, { mode: 0o600, flag: "wx" });
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function read(path: string): Uint8Array {
  const { text, mode, uid } = contentsOf(path);
  const own = process.geteuid?.() ?? uid;
  if ((mode & OTHERS) !== 0 || (uid !== own && uid !== 0)) {
    const why = `${path} holds the secret by which nodes know each other, and others can read it, or it is another user's. Make it this user's own, with mode 0600, and draw another one if somebody may have read it: remove the file, and restart the nodes.`;
    throw new TenureError("CONFIG_INVALID", why);
  }
  if (text.length < SECRET_TEXT_BYTES_MIN) {
    const why = `${path} holds ${text.length} characters; a secret of peers has at least ${SECRET_TEXT_BYTES_MIN}. Remove the file, and a node makes another one.`;
    throw new TenureError("CONFIG_INVALID", why);
  }
  return new TextEncoder().encode(text);
}

function contentsOf(path: string): { readonly text: string; readonly mode: number; readonly uid: number } {
  try {
    const { mode, uid } = statSync(path);
    return { text: readFileSync(path, "utf8").trim(), mode, uid };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const text = `the secret of this machine's nodes can't be read: ${why}. They all run as one user, or each names a file that it can read in peer.secret_file.`;
    throw new TenureError("CONFIG_INVALID", text, { cause: error });
  }
}
