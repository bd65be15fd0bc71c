// The key with which a node signs what its site shows to other sites: Ed25519, PKCS#8 in PEM, in a file that its user alone can read.
// It is made on the first start. It is written whole before it gets its name, and never written again: a node that signed with a key
// that a crash then took away would have signed in nobody's name.
//
// Invariant: a key that others may read is refused, not used.

import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { TenureError } from "../../core/kit/errors.ts";
import { makeDirectories } from "../disk/directories.ts";

const OTHERS = 0o077;

/** The key of this file, which is made where there is none. Throws CONFIG_INVALID where it can't be kept or must not be used. */
export function openMeshKey(path: string): KeyObject {
  try {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) make(path);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const text = `this node's key for other sites can't be kept at ${path} (${why}). Name a file that this user can write and nobody else can read in mesh.key_file.`;
    throw new TenureError("CONFIG_INVALID", text, { cause: error });
  }
  return readMeshKey(path);
}

/** Throws CONFIG_INVALID where there is none, or it must not be used. */
export function readMeshKey(path: string): KeyObject {
  const { text, mode, uid } = contentsOf(path);
  const own = process.geteuid?.() ?? uid;
  if ((mode & OTHERS) !== 0 || (uid !== own && uid !== 0)) {
    const why = `${path} holds the key with which this node signs for its site, and others can read it, or it is another user's. Make it this user's own, with mode 0600. If somebody may have read it, remove it: the node makes another one, and its site's ring of keys changes.`;
    throw new TenureError("CONFIG_INVALID", why);
  }
  return privateKeyOf(path, text);
}

/** Whole or not at all, and only once. */
function make(path: string): void {
  makeDirectories(dirname(path), 0o700);
  const { privateKey } = generateKeyPairSync("ed25519");
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    const file = openSync(draft, "wx", 0o600);
    try {
      writeSync(file, privateKey.export({ type: "pkcs8", format: "pem" }) as string);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  const directory = openSync(dirname(path), "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

function privateKeyOf(path: string, text: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey(text);
  } catch (error) {
    throw notOurs(path, error instanceof Error ? error.message : String(error));
  }
  if (key.asymmetricKeyType !== "ed25519") throw notOurs(path, `it is of the kind ${key.asymmetricKeyType}`);
  return key;
}

function notOurs(path: string, why: string): TenureError {
  const text = `${path} holds no Ed25519 key in PEM: ${why}. Put the node's own key back, or remove the file: the node makes another one, and its site's ring of keys changes.`;
  return new TenureError("CONFIG_INVALID", text);
}

function contentsOf(path: string): { readonly text: string; readonly mode: number; readonly uid: number } {
  try {
    const { mode, uid } = statSync(path);
    return { text: readFileSync(path, "utf8"), mode, uid };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TenureError("CONFIG_INVALID", `this node's key for other sites can't be read: ${why}.`, { cause: error });
  }
}
