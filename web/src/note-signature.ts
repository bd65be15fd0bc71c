// The signature of a checkpoint, checked in the browser (WebCrypto, Ed25519) under the ring of keys that this site has for the line. Where the browser can't,
// that is said: nothing is claimed that was not computed here.

import { checkNote } from "../../src/core/mesh/proof/note.ts";
import { ringProblem } from "../../src/core/mesh/proof/ring.ts";
import type { Ring } from "../../src/core/mesh/model.ts";
import { sha256 } from "../../src/core/events/sha256.ts";

export type SignatureCheck =
  /** `node`: whose key has signed it. */
  | { readonly kind: "valid"; readonly node: string }
  | { readonly kind: "invalid"; readonly why: string }
  /** Neither: it could not be checked here. */
  | { readonly kind: "unchecked"; readonly why: string };

interface Signed {
  readonly key: Uint8Array;
  readonly text: Uint8Array;
  readonly signature: Uint8Array;
}

/** `ring`: what the node gave; nothing of it is believed but that this site has it for the line. `subtle`: undefined in a page that came without TLS. */
export async function checkSignature(
  note: string,
  ring: unknown,
  subtle: Pick<SubtleCrypto, "importKey" | "verify"> | undefined,
): Promise<SignatureCheck> {
  if (ring === null || ring === undefined) return unchecked("this site shows no ring of keys for this line");
  const problem = ringProblem(ring);
  if (problem !== null) return { kind: "invalid", why: `the ring of keys is none: ${problem}` };
  const asked: Signed[] = [];
  // All but the arithmetic of the curve is decided by what other sites decide it with.
  const checked = checkNote(note, ring as Ring, {
    digest: { sha256, sha256Hex: () => "" },
    verify: (key, text, signature) => asked.push({ key, text, signature }) > 0,
  });
  const [signed] = asked;
  if (checked.kind !== "signed" || signed === undefined) {
    return { kind: "invalid", why: checked.kind === "signed" ? "nobody signed it" : checked.problem };
  }
  if (subtle === undefined)
    return unchecked("browsers check signatures only in pages that came over TLS, or from this machine");
  try {
    const key = await subtle.importKey("raw", copied(signed.key), "Ed25519", false, ["verify"]);
    const isValid = await subtle.verify("Ed25519", key, copied(signed.signature), copied(signed.text));
    return isValid ? { kind: "valid", node: checked.node } : { kind: "invalid", why: "its signature is not valid" };
  } catch (error) {
    // NotSupportedError: an older browser. Anything else is no proof of forgery either.
    return unchecked(`this browser can't check Ed25519 (${error instanceof Error ? error.name : String(error)})`);
  }
}

function unchecked(why: string): SignatureCheck {
  return { kind: "unchecked", why };
}

function copied(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}
