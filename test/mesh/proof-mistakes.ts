// Known mistakes in the proof of lines, planted into the source text as it is loaded (src/sim/mutants/patch.ts). The code is pure: no
// simulation is needed to find them, but the table of attacks.

import type { Edit } from "../../src/sim/mutants/patch.ts";

export interface Mistake {
  readonly name: string;
  readonly edits: readonly Edit[];
}

const EVIDENCE = "core/mesh/proof/evidence.ts";
const FORK = "core/mesh/proof/fork.ts";
const INTAKE = "core/mesh/proof/intake.ts";
const NOTE = "core/mesh/proof/note.ts";
const SUCCESSOR = "core/mesh/proof/successor.ts";

function mistake(name: string, file: string, find: string, replace = ""): Mistake {
  return { name, edits: [{ file, find, replace }] };
}

export const PROOF_MISTAKES: readonly Mistake[] = [
  mistake("root-not-compared", INTAKE, "walk.root() !== checkpoint.root", "walk.root() === null"),
  mistake(
    "signature-skipped",
    NOTE,
    "!tools.verify(publicKey, read.signed, read.signature)",
    "!tools.verify(publicKey, read.signed, read.signature) && tools === null",
  ),
  mistake("key-found-by-name-alone", NOTE, "!areSame(read.keyId, keyIdOf(keyName, publicKey, tools.digest))", "false"),
  mistake(
    "own-keys-of-the-page-used",
    INTAKE,
    'const signed = checkNote(page.checkpoint, state.ring, question);\n  if (signed.kind !== "signed") return bad(signed.problem);\n  yield;\n',
    `const last = page.items.at(-1);
     const own = typeof last === "string" && last.includes("controller:registered")
       ? ringOfRegistration(state.ring.controller, JSON.parse(last).payload).ring : state.ring;
     const signed = checkNote(page.checkpoint, own, question);
     if (signed.kind !== "signed") return bad(signed.problem);\n`,
  ),
  mistake(
    "stub-accepted-anywhere",
    INTAKE,
    "withheldHash(walk.withheld, digest) !== checkpoint.withheld.hash",
    "false",
  ),
  mistake("text-of-a-withheld-event-accepted", INTAKE, "if (isWithheld(event.eventType))", "if (false)"),
  mistake(
    "withheld-counted-from-what-is-known",
    INTAKE,
    'if (typeof item !== "string") this.withheld.push(sequence);',
    'if (typeof item !== "string" && sequence > this.#question.state.size) this.withheld.push(sequence);',
  ),
  mistake("withheld-of-another-range", INTAKE, "if (checkpoint.withheld.after !== page.after)", "if (false)"),
  {
    name: "bytes-serialised-again",
    edits: [
      {
        file: INTAKE,
        find: "const bytes = bytesUntilNext(text);",
        replace: "const bytes = encodeEvent(JSON.parse(text));",
      },
      {
        file: INTAKE,
        find: "import { type ChainEvent, eventDigestOf, type StoredEvent } from",
        replace: "import { type ChainEvent, encodeEvent, eventDigestOf, type StoredEvent } from",
      },
    ],
  },
  mistake("canonical-form-not-checked", INTAKE, "scanned ?? ", ""),
  mistake("author-of-a-plain-event-not-checked", INTAKE, "scanner.hasSource(this.#author) &&", ""),
  mistake("place-of-a-plain-event-not-checked", INTAKE, "scanner.sequence === sequence &&", ""),
  mistake("withheld-event-is-plain", INTAKE, "!isWithheld(eventType) &&", ""),
  mistake("gap-skipped", INTAKE, 'if (page.after > state.size) return { kind: "gap", have: state.size };'),
  mistake("checkpoint-of-another-size", INTAKE, "if (checkpoint.size !== end)", "if (false)"),
  mistake("link-not-checked", INTAKE, "this.#wrong(sequence, link.reason);"),
  mistake("author-not-checked", INTAKE, "return isForged ? `its author is not ${ring.author}` : null;", "return null;"),
  mistake("ring-change-inside-a-page", INTAKE, "if (event.sequence !== this.#end)", "if (false)"),
  mistake("removed-key-accepted", INTAKE, "this.#ring = ring;"),
  mistake(
    "equal-size-taken-for-a-duplicate",
    INTAKE,
    "end < state.size || checkpoint.root === rootOf(state, digest)",
    "end <= state.size",
  ),
  mistake(
    "suspicion-called-a-bad-page",
    INTAKE,
    'return { kind: "suspected", checkpoint, note: page.checkpoint, problem };',
    "return bad(problem);",
  ),
  mistake(
    "later-generation-begins-with-anything",
    INTAKE,
    "if (ring.generation > 1 && !this.#isStated) return this.#recovered(event);",
    "",
  ),
  mistake("recovered-anywhere", INTAKE, "state.checkpoint === null && event.sequence === state.size + 1", "false"),
  mistake("recovered-not-compared-with-its-line", SUCCESSOR, "!isProven(old, recovered, proof, digest)", "false"),
  mistake(
    "recovered-hash-not-proven",
    SUCCESSOR,
    "return verifyInclusion({ leafHash: leaf, index: through - 1, size: old.size, root, proof: inclusion }, digest);",
    "return leaf !== inclusion;",
  ),
  mistake(
    "evidence-without-signatures",
    EVIDENCE,
    'if (smaller.kind !== "signed" || larger.kind !== "signed") return false;\n  if (smaller.checkpoint.line',
    "if (smaller.checkpoint === undefined || larger.checkpoint === undefined) return true;\n  if (smaller.checkpoint.line",
  ),
  mistake("evidence-without-a-proof", EVIDENCE, "return verifyConsistency(claim, tools.digest);", "return true;"),
  mistake("evidence-of-one-history", EVIDENCE, "if (evidence.rootAt === smaller.checkpoint.root) return false;"),
  mistake(
    "evidence-of-another-line",
    EVIDENCE,
    "if (smaller.checkpoint.line !== evidence.line || larger.checkpoint.line !== evidence.line) return false;",
  ),
  mistake(
    "consistent-history-called-a-fork",
    FORK,
    'if (prefix.rootAt === smaller.root) return { kind: "consistent" };',
  ),
  mistake("head-believed-without-a-signature", FORK, 'if (signed.kind === "unsigned") {', "if (false) {"),
];
