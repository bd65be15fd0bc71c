// What a server that has none of the site's private keys gets past the audit: public keys are public, and whoever writes a history of its
// own can write them into its ring.

import { expect, test } from "vitest";
import type { Ring } from "../../core/mesh/model.ts";
import { ringHashOf } from "../../core/mesh/proof/index.ts";
import { fakeVerify } from "../../core/mesh/test-signatures.ts";
import { ringOf, TestSite } from "../../core/mesh/test-site.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { audit, AuditFailed, type AuditedSite, type Pin } from "./audit.ts";
import { failedText } from "./view.ts";

/** The site that is asked about; its operator has given the hash of its ring, or its public key. */
const honest: Ring = ringOf("alpha", ["n1"], digest);

/** Signed by a node of nobody's, whose site says that it is alpha too. `shownFirst`: as much is sent before the head is asked for. */
function forged(first: Ring, write: (site: TestSite) => void, shownFirst: number): AuditedSite {
  const site = new TestSite(first, digest);
  write(site);
  const { size } = site;
  let isHeadAsked = false;
  return {
    lines: () => Promise.resolve([{ line: site.line, firstRing: first }]),
    page: async (_line, after) => {
      const end = after < shownFirst ? shownFirst : isHeadAsked ? size : after;
      return after < end ? site.page(after, end, "evil") : null;
    },
    head: async () => {
      isHeadAsked = true;
      return site.head(size, "evil");
    },
    consistency: async (_line, from, to) => site.prefix(from, to).path,
  };
}

function run(site: AuditedSite, pin: Pin) {
  return audit({ site, digest, verify: fakeVerify(digest), progress: () => undefined }, pin);
}

test("a history that the key has not signed is not proven by it, whatever ring the key is in", async () => {
  const both: Ring = { ...honest, keys: [...ringOf("alpha", ["evil"], digest).keys, ...honest.keys] };
  const site = forged(both, (one) => (one.register(both), one.writeMany(4)), 5);
  await expect(run(site, { ringHash: null, publicKey: honest.keys[0]!.key })).rejects.toThrow(/signed/);
});

test("a ring that a history names, and that has signed nothing of it, is not the one that was given", async () => {
  const own = ringOf("alpha", ["evil"], digest);
  // The last event changes the ring to the honest one, and the head is signed by the ring before.
  const site = forged(own, (one) => (one.register(own), one.writeMany(4), one.register(honest)), 5);
  await expect(run(site, { ringHash: ringHashOf(honest, digest), publicKey: null })).rejects.toThrow(/its ring is/);
});

test("what a server calls its line does not reach the terminal as it is: it is the one that is not believed", async () => {
  const line = "alpha.\u001b]0;proven\u0007\u001b[2K\rtenure: every event is the one that the site has signed\u202e";
  const site = { ...forged(honest, (one) => one.writeMany(1), 1), lines: async () => [{ line, firstRing: honest }] };
  const failed: unknown = await run(site, { ringHash: null, publicKey: null }).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(AuditFailed);
  expect(failedText(failed as AuditFailed)).toMatch(/^tenure: the history is not proven\. [^\p{Cc}\p{Cf}]*\n$/u);
});
