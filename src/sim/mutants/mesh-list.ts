// The planted mistakes in the mesh: each must be found by its simulation.

import type { MeshKnobs } from "../mesh/index.ts";
import { type Mutant, planting } from "./patch.ts";

const INTAKE = "core/mesh/proof/intake.ts";
const NOTE = "core/mesh/proof/note.ts";
const WITHHELD = "core/mesh/proof/withheld.ts";
const EVIDENCE = "core/mesh/proof/evidence.ts";
const SPREAD = "core/mesh/spread/spread.ts";
const RECEIPTS = "core/mesh/receipts/state.ts";
const MESH = "controller/mesh/mesh.ts";
const LINKS = "controller/mesh/links/links.ts";
const GATE = "controller/mesh/own/signing-gate.ts";
const TAKING = "controller/mesh/links/intake-queue.ts";
const JUDGE = "controller/mesh/links/heads-judge.ts";
const WORD = "controller/mesh/links/word-of-others.ts";

/** Little else goes wrong than what the runs are about. */
const QUIET = { faults: 4, lie: null } as const;
const STORM = { wayMs: [10, 80], lossRate: 0.1, twiceRate: 0.2, lateRate: 0.05, lateFactor: 20 } as const;
const BUSY = { clientPauseMs: 200, jobsMax: 40 } as const;

function inRunsOf(pins: Partial<MeshKnobs>) {
  return planting({ pins }, "mesh");
}

/** A relay that all of the others' lines pass. */
function withRelay(lie: MeshKnobs["lie"]) {
  return inRunsOf({ ...BUSY, faults: 2, lie, liar: "b", topology: "twins" });
}

/** The copy is made before the site has met anybody. */
const OLD_COPY = {
  ...BUSY,
  lie: null,
  evicts: false,
  restores: true,
  faults: 1,
  copiedMs: [300, 900],
  restoredAfterMs: [3_000, 6_000],
} as const;
const restored = inRunsOf({ ...BUSY, lie: null, evicts: false, restores: true, faults: 3 });
const anywhere = planting(undefined, "mesh");
const forked = inRunsOf({ ...BUSY, faults: 4, lie: "fork", topology: "full" });

export const MESH_MUTANTS: readonly Mutant[] = [
  // ---- what is believed of pages and notes

  withRelay("change")("mesh-root-not-compared", "invariant 3", {
    file: INTAKE,
    find: "if (walk.root() !== checkpoint.root) {",
    replace: 'if (walk.root() === "") {',
  }),
  withRelay("foreign-key")("mesh-signature-not-checked", "invariant 3", {
    file: INTAKE,
    find: 'if (signed.kind !== "signed") return bad(signed.problem);\n  yield;',
    replace: "yield;",
  }),
  withRelay("foreign-key")(
    "mesh-any-key-signs",
    "invariant 3",
    {
      file: NOTE,
      find: "if (!tools.verify(publicKey, read.signed, read.signature))",
      replace: "if (publicKey.length === 0)",
    },
    {
      file: NOTE,
      find: "if (!areSame(read.keyId, keyIdOf(keyName, publicKey, tools.digest)))",
      replace: "if (publicKey.length === 0)",
    },
  ),
  withRelay("stub")("mesh-stub-accepted-anywhere", "invariant 12", {
    file: INTAKE,
    find: "if (withheldHash(walk.withheld, digest) !== checkpoint.withheld.hash)",
    replace: 'if (checkpoint.withheld.hash === "")',
  }),
  anywhere("mesh-keys-leave-the-site", "invariant 12", {
    file: WITHHELD,
    find: 'return eventType === "build:log" || eventType.startsWith("key:");',
    replace: 'return eventType === "build:log";',
  }),
  anywhere("mesh-failures-withheld", "invariant 12", {
    file: WITHHELD,
    find: 'return eventType === "build:log" || eventType.startsWith("key:");',
    replace: 'return ["build:log", "build:completed"].includes(eventType) || eventType.startsWith("key:");',
  }),

  anywhere("mesh-bytes-written-anew", "invariant 1", {
    file: "controller/mesh/own/page-reader.ts",
    find: ": this.#decoder.decode(bytes),",
    replace: ": JSON.stringify(JSON.parse(this.#decoder.decode(bytes)), null, 1),",
  }),
  withRelay("foreign-key")(
    "mesh-line-blamed-for-a-relay",
    "invariant 4",
    {
      file: TAKING,
      find: 'blame.count(peer, "invalid");',
      replace: 'blame.count(peer, "invalid");\n        this.#waiting.set(line, -1);',
    },
    {
      file: TAKING,
      find: "if (!lines.isWanted(line))",
      replace: "if (!lines.isWanted(line) || this.#waiting.has(line))",
    },
  ),

  // ---- forks

  forked("mesh-fork-keeps-one-branch", "invariant 5", {
    file: MESH,
    find: "forked: (evidence) => void this.#word.forked(evidence).catch((error: unknown) => this.#lost(error)),",
    replace: "forked: () => undefined,",
  }),
  forked("mesh-fork-not-passed-on", "invariant 5", {
    file: WORD,
    find: 'if (eventType === "controller:forked") return this.#proven(line, payload);',
  }),
  inRunsOf({ faults: 14, lie: "fork", topology: "twins", weather: STORM })(
    "mesh-evidence-that-comes-early-is-dropped",
    "trap 73",
    {
      file: WORD,
      find: "if (state !== null) return state.ring;",
      replace: "if (state === null || state !== null) return state?.ring ?? null;",
    },
    {
      file: WORD,
      find: "      this.#keep(from, evidence as Evidence);\n      return [];",
      replace: "      return [];",
    },
  ),
  forked(
    "mesh-heads-as-bare-sizes",
    "invariant 5",
    {
      file: JUDGE,
      find: "        this.#prove(peer, state, note, ask);\n        return [line, size];",
      replace: "        return [line, size];",
    },
    { file: JUDGE, find: "forked(compared.evidence);", replace: "void forked;" },
  ),
  inRunsOf({ ...BUSY, faults: 4, lie: "slander", topology: "full" })("mesh-evidence-not-verified", "invariant 10", {
    file: WORD,
    find: "return verifyEvidence(evidence, ring, tools) ? [forkOf(evidence)] : [];",
    replace: "return [forkOf(evidence as Evidence)];",
  }),
  inRunsOf(QUIET)(
    "mesh-consistent-heads-called-a-fork",
    "invariant 4",
    { file: "core/mesh/proof/fork.ts", find: 'if (prefix.rootAt === smaller.root) return { kind: "consistent" };' },
    { file: EVIDENCE, find: "if (evidence.rootAt === smaller.checkpoint.root) return false;" },
  ),

  // ---- a disk that went back

  restored("mesh-signing-before-heads-are-compared", "invariant 4", {
    file: GATE,
    find: 'return standing.kind === "open" ? null : textOf(standing);',
    replace: 'return standing.kind === "behind" ? textOf(standing) : null;',
  }),
  restored("mesh-recovered-site-keeps-its-generation", "invariant 4", {
    file: GATE,
    find: "this.#renewing ??= this.#renew(reign, request.caller, standing).finally(() => (this.#renewing = null));",
    replace: "this.#gate.open();",
  }),
  restored("mesh-through-above-what-is-shared", "invariant 4", {
    file: GATE,
    find: "const place = canSign() && isCommon(gated, standing) ? gated : NO_PLACE;",
    replace:
      "const { sequence: through, hash, frontier } = this.#options.head();\n    const place = { through, hash, frontier: toBase64(frontier) };",
  }),
  restored("mesh-one-peer-opens-the-gate", "invariant 4", {
    file: "core/mesh/gate/gate.ts",
    find: "if (missing.length === 0) return",
    replace: "if (missing.length < peers.length || missing.length === 0) return",
  }),
  // Whoever meets the site first after it was renewed has nothing of the line before. Faults for a site that is cut off at first.
  inRunsOf({
    lie: null,
    evicts: false,
    restores: true,
    copiedMs: [600, 4_000],
    restoredAfterMs: [300, 3_000],
    topology: "tree",
  })("mesh-earlier-lines-not-named", "invariant 1", {
    file: MESH,
    find: "ring: newest.firstRing, earlier };",
    replace: "ring: newest.firstRing };",
  }),
  inRunsOf({ ...OLD_COPY, topology: "star" })("mesh-own-head-before-the-parent-is-compared", "invariant 4", {
    file: "controller/mesh/links/dialled-link.ts",
    find: "const others = (await heads.now()).filter(({ line }) => controllerOf(line) !== ownId());",
    replace: "const others = (await heads.now()).filter(({ line }) => controllerOf(line) !== '');",
  }),
  inRunsOf({ ...OLD_COPY, topology: "star" })("mesh-nobody-known-opens-the-gate", "invariant 4", {
    file: GATE,
    find: "if (this.#gate.isOpen) return this.#resumed(reign);",
    replace:
      "if (this.#options.registry.peers().length === 0) this.#gate.open();\n    if (this.#gate.isOpen) return this.#resumed(reign);",
  }),

  // ---- receipts and arrival numbers

  inRunsOf({ ...QUIET, ...BUSY })("mesh-arrival-without-own-events", "invariant 6", {
    file: "controller/mesh/receipts/receipts-fold.ts",
    find: "own: this.#options.own(), arrivedMs",
    replace: "own: this.state.head.own, arrivedMs",
  }),
  inRunsOf(BUSY)("mesh-known-events-counted-again", "invariant 6", {
    file: RECEIPTS,
    find: "first: from.size + 1,",
    replace: "first: page.after + 1,",
  }),
  inRunsOf({ ...BUSY, snapshotAfterEntries: 20 })("mesh-snapshot-without-foreign-count", "invariant 6", {
    file: RECEIPTS,
    find: "this.#foreign = foreign;",
  }),
  inRunsOf({ ...BUSY, snapshotAfterEntries: 20 })("mesh-snapshot-without-lines", "invariant 6", {
    file: RECEIPTS,
    find: "lines.set(state.line, state);",
    replace: "void state;",
  }),
  inRunsOf({ ...QUIET, ...BUSY, skewsMs: [0, 800, 0, -800, 400] })("mesh-causes-do-not-move-the-clock", "invariant 7", {
    file: "node/assembly/machine.ts",
    find: "floorMs: () => mesh.state.floorMs",
    replace: "floorMs: () => 0",
  }),
  inRunsOf({ ...QUIET, skewsMs: [0, 500_000, 0, 0, 0] })("mesh-any-clock-moves-ours", "trap 58", {
    file: "controller/mesh/receipts/receipts-reign.ts",
    find: "if (timestamp <= untilMs) floorMs",
    replace: "if (untilMs > 0) floorMs",
  }),

  // ---- links and who is known

  inRunsOf({ lie: null })("mesh-dialling-given-up", "trap 60", {
    file: "controller/mesh/links/dialled-link.ts",
    find: "noted(ended.problem);",
    replace: "noted(ended.problem);\n    if (failures > 0) return;",
  }),
  inRunsOf({ lie: null, faults: 12, topology: "tree" })("mesh-heads-shown-once", "trap 73", {
    file: "controller/mesh/links/own-heads.ts",
    find: "const isAll = this.#times % HEADS_ALL_EVERY === 0;",
    replace: "const isAll = this.#times === -HEADS_ALL_EVERY;",
  }),
  inRunsOf({ ...QUIET, topology: "chain" })("mesh-nobody-vouches", "invariant 1", {
    file: WORD,
    find: 'if (eventType === "controller:registered") return this.#vouched(line, event.entityId, payload);',
  }),
  inRunsOf({ ...BUSY, lie: null, faults: 12, topology: "full" })("mesh-relay-cuts-pages-anew", "decision 3", {
    file: "controller/mesh/receipts/foreign-lines.ts",
    find: "pages.push(pageOf(await this.#asSigned(receipt)));",
    replace:
      "const whole = pageOf(page);\n      pages.push({ ...whole, after: next - 1, items: whole.items.slice(next - 1 - whole.after) });",
  }),
  inRunsOf({ ...QUIET, topology: "chain" })("mesh-relays-nothing", "invariant 1", {
    file: "controller/mesh/lines.ts",
    find: "return [...(own.held === null ? own.lines() : []), ...(foreign?.lines() ?? [])];",
    replace: "return foreign === undefined ? [] : [...own.lines()];",
  }),
  inRunsOf(QUIET)("mesh-own-line-asked-for", "invariant 11", {
    file: LINKS,
    find: "const isWanted = !known.isOwn(line) && known.isWanted(line);",
    replace: "const isWanted = known.isWanted(line);",
  }),
  inRunsOf({ faults: 6, lie: "fork", topology: "full" })("mesh-frozen-line-asked-for-ever", "invariant 11", {
    file: LINKS,
    find: "for (const line of new Set([...here, ...named])) {",
    replace: "for (const line of named.length < 0 ? named : here) {",
  }),
  inRunsOf(QUIET)("mesh-page-sent-for-ever", "invariant 11", {
    file: SPREAD,
    find: 'else if ("through" in outcome && outcome.through > after) this.#reaches(lane, outcome.through);',
    replace: 'else if ("through" in outcome && outcome.through > after) lane.size = after;',
  }),
  inRunsOf({ ...QUIET, aims: ["wall-jump-site", "wall-jump-site", "wall-jump-site", "wall-jump-site"] })(
    "mesh-ttl-by-the-wall-clock",
    "trap 74",
    {
      file: "controller/mesh/registry.ts",
      find: "const nowMs = clock.monotonicMs();\n    const isSilent",
      replace: "const nowMs = clock.wallMs();\n    const isSilent",
    },
    {
      file: "controller/mesh/registry.ts",
      find: "this.#heard.get(id)?.atMs ?? this.#beganMs",
      replace: "this.#heard.get(id)?.wallMs ?? this.#startedWallMs",
    },
  ),

  inRunsOf({ ...QUIET, ttlMs: 8_000, topology: "chain" })("mesh-vouched-sites-expire", "trap 73", {
    file: "core/mesh/registry/decide.ts",
    find: "if (site === undefined || isVouched(site)) return false;",
    replace: "if (site === undefined) return false;",
  }),
  inRunsOf({ ...QUIET, ttlMs: 8_000, evicts: false })("mesh-heartbeats-not-counted", "trap 74", {
    file: "controller/mesh/registry.ts",
    find: "this.#heard.get(id)?.atMs ?? this.#beganMs",
    replace: "this.#beganMs",
  }),

  inRunsOf({ ...BUSY, lie: null, evicts: true, faults: 2, topology: "full" })(
    "mesh-evicted-site-still-read",
    "invariant 10",
    {
      file: "core/mesh/registry/registry.ts",
      find: 'if (site.isEvicted) return { kind: "evicted" };',
    },
  ),

  // ---- the merged state

  inRunsOf(BUSY)(
    "mesh-one-row-for-all-lines",
    "invariant 2",
    {
      file: "core/mesh/merge/projection.ts",
      find: "const text = this.#store.get(kind, said.line, entityId);",
      replace: 'said = { ...said, line: "all" };\n    const text = this.#store.get(kind, said.line, entityId);',
    },
    {
      file: "core/mesh/merge/version.ts",
      find: "return isLater(other.at, one.at) ? other : one;",
      replace: "return other;",
    },
  ),
];
