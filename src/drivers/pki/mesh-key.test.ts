import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { signerOf, verifyEd25519 } from "../system/signatures.ts";
import { openMeshKey, readMeshKey } from "./mesh-key.ts";

let directory = "";
let path = "";

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "mesh-key-"));
  path = join(directory, "deeper", "mesh.key");
});
afterEach(() => rmSync(directory, { recursive: true }));

test("the first start makes it, for its user alone; later ones find the same, and nothing else is left", () => {
  const publicKey = keyOf(path);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const text = readFileSync(path, "utf8");
  expect(keyOf(path)).toEqual(publicKey);
  expect(signerOf(readMeshKey(path)).publicKey).toEqual(publicKey);
  expect(readFileSync(path, "utf8")).toBe(text);
  expect(readdirSync(join(directory, "deeper"))).toEqual(["mesh.key"]);
});

test("what it signs is verified with its public key", () => {
  const signer = signerOf(openMeshKey(path));
  const message = new TextEncoder().encode("a line\n12\n");
  const signature = signer.sign(message);
  expect(verifyEd25519(signer.publicKey, message, signature)).toBe(true);
  expect(verifyEd25519(signer.publicKey, message.subarray(1), signature)).toBe(false);
});

test("one that others can read is refused", () => {
  openMeshKey(path);
  chmodSync(path, 0o640);
  expect(() => openMeshKey(path)).toThrow(/others can read it/);
  chmodSync(path, 0o600);
  expect(keyOf(path)).toHaveLength(32);
});

test("what is no such key is refused and kept", () => {
  openMeshKey(path);
  writeFileSync(path, "nothing");
  expect(() => openMeshKey(path)).toThrow(/holds no Ed25519 key/);
  expect(readFileSync(path, "utf8")).toBe("nothing");
  expect(() => readMeshKey(join(directory, "none"))).toThrow(/can't be read/);
});

function keyOf(path: string): Uint8Array {
  return signerOf(openMeshKey(path)).publicKey;
}
