// What the tests of this folder share: a site to read from, pages that are signed whatever they say, and short ways to ask.

import { canonicalJson } from "../../events/canonical.ts";
import { eventHashOf } from "../../events/event.ts";
import { bytesOfHash, hexOf } from "../../events/hex.ts";
import { MerkleFrontier } from "../../events/merkle.ts";
import type { Json } from "../../kit/json.ts";
import { parseJson } from "../../kit/parse-json.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { LineState, Page, PageItem } from "../model.ts";
import { fakeVerify } from "../test-signatures.ts";
import { ringOf, TestSite } from "../test-site.ts";
import { checkPage, type ProofTools, type Verdict, withheldHash } from "./index.ts";
import type { PageQuestion } from "./intake.ts";

const textEncoder = new TextEncoder();

export function verdictOf(state: LineState, page: Page, tools: Omit<PageQuestion, "state" | "page">): Verdict {
  const check = checkPage({ state, page, ...tools });
  for (;;) {
    const step = check.next();
    if (step.done === true) return step.value;
  }
}

export function toolsOf(digest: Digest): ProofTools {
  return { digest, verify: fakeVerify(digest) };
}

/** Twelve events; 4 and 7 are withheld. */
export function exampleSite(digest: Digest, nodes: readonly string[] = ["n1", "n2"]): TestSite {
  const site = new TestSite(ringOf("site-a", nodes, digest), digest);
  for (let sequence = 1; sequence <= 12; sequence++) {
    if (sequence === 4) site.write({ eventType: "build:log" });
    else if (sequence === 7) site.write({ eventType: "key:created" });
    else site.write();
  }
  return site;
}

/** A page whose root and withheld positions fit its items, whatever they say: what only the site itself can sign. */
export function signedPage(site: TestSite, state: LineState, items: readonly PageItem[]): Page {
  const { digest } = site;
  const tree = state.size === 0 ? new MerkleFrontier(digest) : MerkleFrontier.decode(state.frontier, digest);
  const withheld: number[] = [];
  for (const [at, item] of items.entries()) {
    if (typeof item !== "string") withheld.push(state.size + at + 1);
    tree.append(bytesOfHash(typeof item === "string" ? eventHashOf(textEncoder.encode(item), digest) : item.hash));
  }
  const checkpoint = site.sign({
    line: state.line,
    size: tree.size,
    root: hexOf(tree.root()),
    withheld: { after: state.size, hash: withheldHash(withheld, digest) },
  });
  return { line: state.line, after: state.size, items, checkpoint };
}

/** The text with other values in some fields, still canonical. */
export function changed(text: string, more: { readonly [field: string]: Json }): string {
  return canonicalJson({ ...(parseJson(text) as { readonly [field: string]: Json }), ...more });
}

export function expectKind<K extends Verdict["kind"]>(verdict: Verdict, kind: K, problem = ""): Verdict & { kind: K } {
  const text = verdict.kind === "bad" || verdict.kind === "suspected" ? verdict.problem : "";
  demand(verdict.kind === kind && text.includes(problem), `${verdict.kind} (${text}) and not ${kind} (${problem})`);
  return verdict as Verdict & { kind: K };
}

export function demand(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(what);
}

/** The line, read up to `size` in pages that end at these sizes. */
export function readTo(site: TestSite, ends: readonly number[], tools: ProofTools): LineState {
  let state = site.start;
  for (const end of ends) state = expectKind(verdictOf(state, site.page(state.size, end), tools), "accepted").state;
  return state;
}

/** A site that shares the first `common` events with the example and then writes others. */
export function forkedSite(digest: Digest, common: number, size: number): TestSite {
  const site = new TestSite(ringOf("site-a", ["n1", "n2"], digest), digest);
  for (let sequence = 1; sequence <= size; sequence++) {
    const other = sequence > common ? { payload: { other: true } } : {};
    if (sequence === 4) site.write({ eventType: "build:log", ...other });
    else if (sequence === 7) site.write({ eventType: "key:created", ...other });
    else site.write(other);
  }
  return site;
}
