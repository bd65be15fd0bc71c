// Certificates and keys as files. A key is readable by its owner alone and is never overwritten unless that is asked for;
// a certificate is replaced in one step, as a running server may read it at that moment.

import { randomBytes } from "node:crypto";
import { open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { TenureError } from "../../core/kit/errors.ts";
import { makeDirectories } from "../disk/directories.ts";
import type { KeyPair } from "./authority.ts";
import { inspect, type Inspected } from "./inspection.ts";
import { CERTIFICATES_READ_MAX } from "./limits.ts";

const KEY_MODE = 0o600;
const CERTIFICATE_MODE = 0o644;
const DIRECTORY_MODE = 0o700;

export const CA_NAME = "ca";

export interface StoredPair {
  readonly certFile: string;
  readonly keyFile: string;
}

/** `ca.crt` and how many authorities it holds; `isAdded`: one more than before. */
export interface Trusted {
  readonly certFile: string;
  readonly authorities: number;
  readonly isAdded: boolean;
}

export class KeyStore {
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
  }

  files(name: string): StoredPair {
    return { certFile: join(this.directory, `${name}.crt`), keyFile: join(this.directory, `${name}.key`) };
  }

  /** `force`: a key that is there is replaced. The same key again is not a replacement. */
  async save(name: string, pair: KeyPair, force: boolean): Promise<StoredPair> {
    const { certFile, keyFile } = this.files(name);
    this.#make();
    const present = await textOf(keyFile);
    if (present !== pair.key) {
      if (present !== null && !force) throw keyExists(keyFile);
      await write(keyFile, pair.key, KEY_MODE);
    }
    await write(certFile, pair.cert, CERTIFICATE_MODE);
    return { certFile, keyFile };
  }

  /**
   * `ca.crt` holds this authority from now on, after those that it held before: it may hold two while one takes the place of the
   * other, and whoever took one out would lock out everybody whom that one has signed.
   */
  async trust(authority: string, nowMs: number): Promise<Trusted> {
    const { certFile } = this.files(CA_NAME);
    const text = (await textOf(certFile)) ?? "";
    const present = text.trim() === "" ? [] : authoritiesIn(certFile, text, nowMs);
    const [{ fingerprint }] = inspect(authority, nowMs) as [Inspected];
    if (present.some((one) => one.fingerprint === fingerprint)) {
      return { certFile, authorities: present.length, isAdded: false };
    }
    this.#make();
    const before = present.length === 0 ? "" : `${text.trimEnd()}\n`;
    await write(certFile, `${before}${authority.trimEnd()}\n`, CERTIFICATE_MODE);
    return { certFile, authorities: present.length + 1, isAdded: present.length > 0 };
  }

  /** The names and addresses in the certificate that is there; none where there is none. */
  async hosts(name: string, nowMs: number): Promise<readonly string[]> {
    const { certFile } = this.files(name);
    const text = await textOf(certFile);
    if (text === null) return [];
    try {
      return inspect(text, nowMs)[0]?.hosts ?? [];
    } catch (error) {
      const remedy = "The names in it are unknown: remove it, and give all of them with --host.";
      throw damaged(certFile, error, remedy);
    }
  }

  #make(): void {
    try {
      makeDirectories(this.directory, DIRECTORY_MODE);
    } catch (error) {
      throw unusable(this.directory, error);
    }
  }

  async key(name: string): Promise<string | null> {
    return await textOf(this.files(name).keyFile);
  }

  async pair(name: string): Promise<KeyPair | null> {
    const { certFile, keyFile } = this.files(name);
    const [cert, key] = [await textOf(certFile), await textOf(keyFile)];
    return cert === null || key === null ? null : { cert, key };
  }

  /** The node ids of the certificates that are there; what can't be read is not ours. */
  async nodeIds(nowMs: number): Promise<string[]> {
    const ids = new Set<string>();
    const names = await readdir(this.directory).catch(() => []);
    for (const name of names.filter((one) => one.endsWith(".crt")).slice(0, CERTIFICATES_READ_MAX)) {
      try {
        const [first] = inspect((await textOf(join(this.directory, name))) ?? "", nowMs);
        const nodeId = first?.nodeId ?? null;
        if (nodeId !== null) ids.add(nodeId);
      } catch (error) {
        if (!TenureError.is(error)) throw error;
      }
    }
    return [...ids].toSorted();
  }
}

function authoritiesIn(file: string, text: string, nowMs: number): readonly Inspected[] {
  const remedy = `It is not touched, as it may hold authorities that others rely on. Put back a copy that is whole (of another node, or ca.crt of the authority's directory), or remove it.`;
  let found: readonly Inspected[];
  try {
    found = inspect(text, nowMs);
  } catch (error) {
    throw damaged(file, error, remedy);
  }
  if ((text.match(/-----BEGIN /g) ?? []).length === found.length && found.every(({ isCa }) => isCa)) return found;
  throw damaged(file, new Error("it holds something else than whole certificates of authorities"), remedy);
}

function damaged(file: string, error: unknown, remedy: string): TenureError {
  const why = (error instanceof Error ? error.message : String(error)).replace(/\.$/, "");
  return new TenureError("CERTIFICATE_INVALID", `${file}: ${why}. ${remedy}`, { cause: error });
}

function keyExists(file: string): TenureError {
  return new TenureError(
    "CONFIG_INVALID",
    `there is a key in ${file} already, and it is not overwritten: what was issued with it would be worth nothing. Give another directory, or --force.`,
  );
}

async function textOf(file: string): Promise<string | null> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw unusable(file, error);
  }
}

async function write(file: string, text: string, mode: number): Promise<void> {
  const temporary = `${file}.${randomBytes(4).toString("hex")}.tmp`;
  try {
    // "wx": a file that somebody put there, with rights of his own, is not written into.
    const handle = await open(temporary, "wx", mode);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw unusable(file, error);
  }
}

function unusable(file: string, error: unknown): TenureError {
  const why = (error as NodeJS.ErrnoException).code ?? String(error);
  return new TenureError("CONFIG_INVALID", `${file} can't be used (${why}). Check the directory and its rights.`, {
    cause: error,
  });
}
