// What hostile sites and relays try, as a table: each row throws if it succeeds. The unit test runs it on the code as it is;
// test/mesh/proof-mistakes.test.ts runs it on code with a planted mistake, and sees a row fail.

import { hexOf } from "../../events/hex.ts";
import type { Json } from "../../kit/json.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { Page, PageItem } from "../model.ts";
import { fakeSigner } from "../test-signatures.ts";
import { ringOf, TestSite } from "../test-site.ts";
import {
  checkNote,
  compareHeads,
  evidenceOf,
  readRecovered,
  recoveredPayload,
  settle,
  successorOf,
  verifyEvidence,
} from "./index.ts";
import {
  changed,
  demand,
  exampleSite,
  expectKind,
  forkedSite,
  readTo,
  signedPage,
  toolsOf,
  verdictOf,
} from "./test-pages.ts";

export interface Attack {
  readonly name: string;
  readonly run: (digest: Digest) => void;
}

function withItem(page: Page, at: number, item: PageItem): Page {
  return { ...page, items: page.items.with(at, item) };
}

const PAGES: readonly Attack[] = [
  {
    name: "an honest line is accepted, however it is cut, and ends in the same state",
    run: (digest) => {
      const site = exampleSite(digest);
      const tools = toolsOf(digest);
      for (const ends of [[12], [1, 2, 3, 4, 5, 6, 7, 12], [4, 8, 12]]) {
        const { size, hash, frontier } = readTo(site, ends, tools);
        demand(size === 12 && hash === site.hash(12), "the last event");
        demand(hexOf(frontier) === hexOf(site.frontier(12)), "the tree");
      }
    },
  },
  {
    name: "a relay changes a text",
    run: (digest) => {
      const site = exampleSite(digest);
      const page = site.page(0, 12);
      for (const at of [0, 5, 11]) {
        const text = changed(site.text(at + 1), { payload: { attempt: 2 } });
        expectKind(verdictOf(site.start, withItem(page, at, text), toolsOf(digest)), "suspected");
      }
    },
  },
  {
    name: "a stranger writes the line, with a key of its own under a node's name",
    run: (digest) => {
      const site = exampleSite(digest);
      const checkpoint = site.checkpoint(12, 0);
      const note = site.sign(checkpoint, "n1", fakeSigner("stranger", digest));
      const page = { ...site.page(0, 12), checkpoint: note };
      expectKind(verdictOf(site.start, page, toolsOf(digest)), "bad", "has another key of the node n1");
      expectKind(
        verdictOf(site.start, { ...page, checkpoint: site.sign(checkpoint, "n9") }, toolsOf(digest)),
        "bad",
        "has no key of",
      );
    },
  },
  {
    name: "a note's signature is another checkpoint's",
    run: (digest) => {
      const site = exampleSite(digest);
      const [, signature] = site.page(0, 11).checkpoint.split("\n\n");
      const [text] = site.page(0, 12).checkpoint.split("\n\n");
      const page = { ...site.page(0, 12), checkpoint: `${text}\n\n${signature}` };
      expectKind(verdictOf(site.start, page, toolsOf(digest)), "bad", "signature is not valid");
    },
  },
  {
    name: "a page brings the ring that it is signed with",
    run: (digest) => {
      const site = exampleSite(digest, ["n1"]);
      const after = readTo(site, [12], toolsOf(digest));
      site.register({ ...site.ring, keys: ringOf("site-a", ["n1", "n2"], digest).keys });
      expectKind(verdictOf(after, site.page(12, 13, "n2"), toolsOf(digest)), "bad", "has no key of the node n2");
      expectKind(verdictOf(after, site.page(12, 13, "n1"), toolsOf(digest)), "accepted");
    },
  },
  {
    name: "a removed key signs what follows",
    run: (digest) => {
      const site = exampleSite(digest);
      site.register({ ...site.ring, keys: site.ring.keys.slice(0, 1) });
      const before = readTo(site, [12], toolsOf(digest));
      const { state } = expectKind(verdictOf(before, site.page(12, 13, "n2"), toolsOf(digest)), "accepted");
      site.write();
      expectKind(verdictOf(state, site.page(13, 14, "n2"), toolsOf(digest)), "bad", "has no key of the node n2");
      expectKind(verdictOf(state, site.page(13, 14, "n1"), toolsOf(digest)), "accepted");
    },
  },
  {
    name: "a change of the ring is not the last of its page",
    run: (digest) => {
      const site = exampleSite(digest);
      site.register({ ...site.ring, keys: site.ring.keys.slice(0, 1) });
      site.write();
      expectKind(verdictOf(site.start, site.page(0, 14), toolsOf(digest)), "bad", "ends its page");
      // The same ring once more is no change.
      const calm = exampleSite(digest);
      calm.register(calm.ring);
      calm.write();
      expectKind(verdictOf(calm.start, calm.page(0, 14), toolsOf(digest)), "accepted");
    },
  },
  {
    name: "a relay hides an event as withheld",
    run: (digest) => {
      const site = exampleSite(digest);
      for (const sequence of [1, 6, 12]) {
        const page = withItem(site.page(0, 12), sequence - 1, { hash: site.hash(sequence) });
        expectKind(verdictOf(site.start, page, toolsOf(digest)), "bad", "signed as withheld");
      }
    },
  },
  {
    name: "the text of a withheld event gets out",
    run: (digest) => {
      const site = exampleSite(digest);
      const relayed = withItem(site.page(0, 12), 3, site.text(4));
      expectKind(verdictOf(site.start, relayed, toolsOf(digest)), "bad", "signed as withheld");
      const leaked = signedPage(site, site.start, site.page(0, 12).items.with(3, site.text(4)));
      expectKind(verdictOf(site.start, leaked, toolsOf(digest)), "bad", "build:log is withheld");
    },
  },
  {
    name: "a page that begins with what is known is accepted as a whole",
    run: (digest) => {
      const site = exampleSite(digest);
      for (const have of [1, 4, 5, 7, 11]) {
        const before = readTo(site, [have], toolsOf(digest));
        const { state, firstNew, events } = expectKind(
          verdictOf(before, site.page(0, 12), toolsOf(digest)),
          "accepted",
        );
        demand(firstNew === have + 1 && events.length === 12 - have, "only what is new");
        demand(hexOf(state.frontier) === hexOf(site.frontier(12)), "the tree");
        const hidden = withItem(site.page(0, 12), 0, { hash: site.hash(1) });
        expectKind(verdictOf(before, hidden, toolsOf(digest)), "bad", "signed as withheld");
      }
    },
  },
  {
    name: "a page is cut again under the note of another cut",
    run: (digest) => {
      const site = exampleSite(digest);
      const before = readTo(site, [8], toolsOf(digest));
      const cut = { ...site.page(0, 12), after: 8, items: site.page(8, 12).items };
      expectKind(verdictOf(before, cut, toolsOf(digest)), "bad", "what is withheld after 0");
      const short = { ...site.page(0, 12), items: site.page(0, 11).items };
      expectKind(verdictOf(site.start, short, toolsOf(digest)), "bad", "items end at 11");
    },
  },
  {
    name: "an event is spelt in another way, by a relay or by the site",
    run: (digest) => {
      const site = exampleSite(digest);
      const spelt = site.text(1).replace('","entityType"', '", "entityType"');
      expectKind(verdictOf(site.start, withItem(site.page(0, 1), 0, spelt), toolsOf(digest)), "suspected");
      const odd = signedPage(site, site.start, [spelt]);
      expectKind(verdictOf(site.start, odd, toolsOf(digest)), "bad", "entityType was expected");
    },
  },
  {
    name: "events are left out between what is known and the page",
    run: (digest) => {
      const site = exampleSite(digest);
      const before = readTo(site, [3], toolsOf(digest));
      const verdict = expectKind(verdictOf(before, site.page(5, 12), toolsOf(digest)), "gap");
      demand(verdict.have === 3, "how much is known");
    },
  },
  {
    name: "the site's own event does not link, or is not its own",
    run: (digest) => {
      const site = exampleSite(digest);
      // It has stated its ring; before that, a site that was recovered early has other authors.
      const before = { ...readTo(site, [8], toolsOf(digest)), isStated: true };
      const refused = (more: { readonly [field: string]: Json }, problem: string) =>
        expectKind(
          verdictOf(before, signedPage(site, before, [changed(site.text(9), more)]), toolsOf(digest)),
          "bad",
          problem,
        );
      refused({ previousHash: "0".repeat(64) }, "previousHash");
      refused({ sequence: 10 }, "sequence 10 follows 8");
      refused({ timestamp: before.timestamp }, "timestamp");
      refused({ sourceControllerId: "site-b.1" }, "author is not site-a.1");
      const early = { ...before, isStated: false };
      const older = signedPage(site, early, [changed(site.text(9), { sourceControllerId: "site-a.0" })]);
      expectKind(verdictOf(early, older, toolsOf(digest)), "accepted");
      expectKind(
        verdictOf(early, older, { ...toolsOf(digest), isOthers: (author) => author === "site-a.0" }),
        "bad",
        "author is not site-a.1",
      );
    },
  },
  {
    name: "another history of the same size, or after it, is a suspicion and no bad page",
    run: (digest) => {
      const site = exampleSite(digest);
      const other = forkedSite(digest, 8, 14);
      const state = readTo(site, [12], toolsOf(digest));
      expectKind(verdictOf(state, other.page(8, 12), toolsOf(digest)), "suspected", "our size");
      expectKind(verdictOf(state, other.page(12, 14), toolsOf(digest)), "suspected");
      expectKind(verdictOf(state, site.page(8, 12), toolsOf(digest)), "duplicate");
    },
  },
];

const SUCCESSORS: readonly Attack[] = [
  {
    name: "a later generation begins elsewhere than the line before it says",
    run: (digest) => {
      const old = exampleSite(digest);
      const ring = ringOf("site-a", ["n1"], digest, 2);
      const known = readTo(old, [12], toolsOf(digest));
      const payload = recoveredPayload(readTo(old, [9], toolsOf(digest)));
      const proof = { consistency: old.prefix(9, 12).path, inclusion: old.inclusion(9, 12) };
      const begun = (more: { readonly [field: string]: Json }, given = proof) => {
        const recovered = readRecovered({ ...payload, ...more }, digest);
        demand(recovered !== null, "it is read");
        return successorOf({ old: known, ring, recovered, proof: given, digest });
      };
      demand(begun({}).kind === "line", "as it was");
      demand(begun({ hash: old.hash(8) }).kind === "refused", "another event");
      const other = recoveredPayload(readTo(forkedSite(digest, 5, 9), [9], toolsOf(digest)));
      demand(begun({ frontier: other["frontier"]! }).kind === "refused", "another tree");
      demand(begun({}, { ...proof, inclusion: old.inclusion(8, 12) }).kind === "refused", "another event's proof");
    },
  },
  {
    name: "a later generation begins with another event than its recovery",
    run: (digest) => {
      const old = exampleSite(digest);
      const ring = ringOf("site-a", ["n1"], digest, 2);
      const known = readTo(old, [12], toolsOf(digest));
      const recovered = readRecovered(recoveredPayload(known), digest);
      demand(recovered !== null, "it is read");
      const begun = successorOf({ old: known, ring, recovered, digest });
      demand(begun.kind === "line", begun.kind);
      const { state } = begun;
      const continued = { state, leaves: old.leaves(12) };
      const honest = new TestSite(ring, digest, continued);
      const about = { eventType: "controller:recovered", entityId: "site-a" } as const;
      honest.write({ ...about, payload: recoveredPayload(known) });
      expectKind(verdictOf(state, honest.page(12, 13), toolsOf(digest)), "accepted");
      const silent = new TestSite(ring, digest, continued);
      silent.write();
      expectKind(
        verdictOf(state, silent.page(12, 13), toolsOf(digest)),
        "bad",
        "of a later generation is controller:recovered",
      );
      // It may have withheld what it wrote before it knew, but not its recovery.
      honest.write();
      const hidden = signedPage(honest, state, [{ hash: honest.hash(13) }, honest.text(14)]);
      expectKind(verdictOf(state, hidden, toolsOf(digest)), "bad", "of a later generation is controller:recovered");
      const liar = new TestSite(ring, digest, continued);
      liar.write({ ...about, payload: { ...recoveredPayload(known), through: 11 } });
      expectKind(verdictOf(state, liar.page(12, 13), toolsOf(digest)), "bad", "begins elsewhere");
    },
  },
];

const FORKS: readonly Attack[] = [
  {
    name: "a fork is proven, at one size and at two",
    run: (digest) => {
      const tools = toolsOf(digest);
      const site = exampleSite(digest);
      const other = forkedSite(digest, 8, 14);
      const state = readTo(site, [12], tools);
      const ask = (note: string) => compareHeads({ state, known: () => null, note }, tools);
      const equal = ask(other.head(12));
      demand(equal.kind === "fork" && verifyEvidence(equal.evidence, site.ring, tools), "of one size");
      demand(ask(other.head(14)).kind === "ahead", "a longer one shows nothing yet");
      const settled = settle({ state, note: other.head(14), proof: other.prefix(12, 14) }, tools);
      demand(settled.kind === "fork" && verifyEvidence(settled.evidence, site.ring, tools), "theirs is larger");
      const late = settle({ state, note: other.head(10), proof: site.prefix(10, 12) }, tools);
      demand(late.kind === "fork" && verifyEvidence(late.evidence, site.ring, tools), "ours is larger");
    },
  },
  {
    name: "an honest line is accused",
    run: (digest) => {
      const tools = toolsOf(digest);
      const site = exampleSite(digest);
      const other = forkedSite(digest, 8, 14);
      const forged = other.sign(other.checkpoint(14), "n1", fakeSigner("stranger", digest));
      const real = evidenceOf([site.head(10), other.head(14)], other.prefix(10, 14), site.ring, tools);
      demand(real !== null, "a real one");
      const accusations = {
        "the larger note is forged": { ...real, larger: forged },
        "the smaller note is forged": {
          ...real,
          smaller: other.sign(site.checkpoint(10), "n1", fakeSigner("stranger", digest)),
        },
        "the proof is of other sizes": { ...real, path: other.prefix(11, 14).path },
        "the root is made up": { ...real, rootAt: "0".repeat(64) },
        "both are of one history": {
          ...real,
          larger: site.head(12),
          rootAt: site.root(10),
          path: site.prefix(10, 12).path,
        },
        "one note twice": { ...real, larger: real.smaller, rootAt: site.root(10), path: [] },
        "of another line": { ...real, line: `site-a.${"0".repeat(32)}` },
        "under another ring": { ...real, ring: "0".repeat(64) },
      };
      for (const [name, evidence] of Object.entries(accusations))
        demand(!verifyEvidence(evidence, site.ring, tools), `believed: ${name}`);
      demand(
        evidenceOf([site.head(10), site.head(12)], site.prefix(10, 12), site.ring, tools) === null,
        "made of nothing",
      );
      const state = readTo(site, [10], tools);
      const settled = settle({ state, note: site.head(12), proof: site.prefix(10, 12) }, tools);
      demand(settled.kind === "consistent", `a page that was changed on its way: ${settled.kind}`);
      const lie = settle({ state, note: site.head(12), proof: other.prefix(10, 12) }, tools);
      demand(lie.kind === "unproven", `a proof of another tree: ${lie.kind}`);
    },
  },
  {
    name: "heads that nobody of the ring signed",
    run: (digest) => {
      const tools = toolsOf(digest);
      const site = exampleSite(digest);
      const state = readTo(site, [8], tools);
      const ask = (note: string) => compareHeads({ state, known: () => null, note }, tools).kind;
      demand(ask(site.head(12)) === "ahead", "a signed one");
      demand(
        ask(site.sign(site.checkpoint(12), "n1", fakeSigner("stranger", digest))) === "unknown-key",
        "a stranger's",
      );
      demand(ask(site.sign(site.checkpoint(12), "n7")) === "unknown-key", "a node that is not known yet");
      const [, signature] = site.head(11).split("\n\n");
      const [text] = site.head(12).split("\n\n");
      demand(ask(`${text}\n\n${signature}`) === "bad", "a signature of something else");
      demand(
        checkNote(site.head(12), ringOf("site-b", ["n1"], digest), tools).kind === "unsigned",
        "another site's ring",
      );
    },
  },
];

export const ATTACKS: readonly Attack[] = [...PAGES, ...SUCCESSORS, ...FORKS];
