import { describe, expect, test } from "vitest";
import type { LineState, Page } from "../../../core/mesh/model.ts";
import {
  checkNote,
  checkPage,
  emptyLine,
  readRecovered,
  ringHashOf,
  rootOf,
  successorOf,
  type Verdict,
} from "../../../core/mesh/proof/index.ts";
import { provenKey } from "../../../core/mesh/registry/index.ts";
import { fakeVerify } from "../../../core/mesh/test-signatures.ts";
import { decodeEvent, bytesOfHash, verifyConsistency } from "../../../core/events/index.ts";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import type { OwnLine } from "./own-line.ts";
import { OwnLineFold } from "./own-line-fold.ts";
import { OwnSiteStage } from "./test-own-site.ts";

const verify = fakeVerify(digest);

function judge(state: LineState, page: Page): Verdict {
  const walk = checkPage({ state, page, digest, verify });
  let step = walk.next();
  while (step.done !== true) step = walk.next();
  return step.value;
}

/** As another site takes it in, from the state on. */
async function pulled(own: OwnLine, from: LineState): Promise<{ state: LineState; sizes: number[] }> {
  let state = from;
  const sizes: number[] = [];
  for (
    let page = await own.page(state.line, state.size);
    page !== null;
    page = await own.page(state.line, state.size)
  ) {
    const verdict = judge(state, page);
    if (verdict.kind !== "accepted") throw new Error(JSON.stringify(verdict));
    sizes.push(page.items.length);
    ({ state } = verdict);
  }
  return { state, sizes };
}

describe("pages of the own line", () => {
  test("are taken in by another site, from the first event on, also those before the ring", async () => {
    const stage = new OwnSiteStage(digest);
    stage.grow(600);
    stage.ring("n1");
    stage.grow(700);
    const { state, sizes } = await pulled(stage.lineAt("n1"), emptyLine(stage.ringOf("n1"), digest));
    expect(state.size).toBe(1_301);
    expect(sizes).toEqual([512, 512, 277]);
  });

  test("begin anywhere", async () => {
    const stage = new OwnSiteStage(digest);
    stage.ring("n1");
    stage.grow(1_200);
    const own = stage.lineAt("n1");
    const known = await pulled(own, emptyLine(stage.ringOf("n1"), digest));
    const other = stage.lineAt("n1");
    for (const after of [0, 1, 511, 512, 1_000, 1_200]) {
      const page = (await other.page(own.lines()[0]!, after))!;
      expect([page.after, page.items.length]).toEqual([after, Math.min(512, 1_201 - after)]);
      const state = {
        ...known.state,
        ...stage.point(after),
        checkpoint: null,
        frontier: after === 0 ? new Uint8Array(0) : stage.point(after).frontier,
      };
      expect(judge(state, page).kind).toBe("accepted");
    }
    expect(await other.page(own.lines()[0]!, 1_201)).toBeNull();
    expect(await other.page(own.lines()[0]!, 9_999)).toBeNull();
  });

  test("end at 512 KiB; a larger event has a page of its own", async () => {
    const stage = new OwnSiteStage(digest);
    stage.ring("n1");
    const letters = (count: number): { text: string } => ({ text: "é".repeat(count / 2) });
    for (const bytes of [200_000, 200_000, 200_000, 700_000, 10, 10]) stage.write("queue:paused", letters(bytes));
    const { sizes } = await pulled(stage.lineAt("n1"), emptyLine(stage.ringOf("n1"), digest));
    expect(sizes).toEqual([3, 1, 1, 2]);
  });

  test("have no text of an event that is withheld", async () => {
    const stage = new OwnSiteStage(digest);
    stage.ring("n1");
    stage.write("build:log", { chunk: "a secret" });
    stage.write("key:revoked", { by: "a secret" });
    stage.write("queue:paused", { by: "not secret" });
    const page = (await stage.lineAt("n1").page(stage.fold.lines!.generations[0]!.line, 0))!;
    expect(JSON.stringify(page)).not.toContain("a secret");
    expect(page.items.map((item) => typeof item)).toEqual(["string", "object", "object", "string"]);
  });

  test("what retention has cut off is LOG_COMPACTED; another line is NOT_FOUND", async () => {
    const stage = new OwnSiteStage(digest);
    stage.ring("n1");
    stage.grow(10);
    stage.startSequence = 4;
    const own = stage.lineAt("n1");
    const [line] = own.lines() as [string];
    await expect(own.page(line, 3)).rejects.toMatchObject({ code: "LOG_COMPACTED" });
    expect((await own.page(line, 4))!.items).toHaveLength(7);
    await expect(own.page(`beta.${"0".repeat(32)}`, 0)).rejects.toMatchObject({ code: "NOT_FOUND" });
  });
});

describe("a change of the ring", () => {
  test("ends its page, which a key of the ring before signs", async () => {
    const stage = new OwnSiteStage(digest);
    stage.ring("n1");
    stage.grow(5);
    const changed = stage.ring("n1", "n2");
    stage.grow(5);
    const { state, sizes } = await pulled(stage.lineAt("n1"), emptyLine(stage.ringOf("n1"), digest));
    expect(sizes).toEqual([changed, 5]);
    expect(ringHashOf(state.ring, digest)).toBe(ringHashOf(stage.ringOf("n1", "n2"), digest));
  });

  test("a node that came later asks one that has a key of the ring before, and believes no other note", async () => {
    const stage = new OwnSiteStage(digest);
    stage.ring("n1");
    stage.grow(5);
    stage.ring("n1", "n2");
    stage.grow(5);
    const first = stage.lineAt("n1");
    const asked: string[] = [];
    const second = stage.lineAt("n2", {
      askNote: ({ keys }, place) => {
        asked.push(`${keys.map(({ node }) => node).join()} ${place.after} ${place.size}`);
        return first.noteFor(place);
      },
    });
    expect((await pulled(second, emptyLine(stage.ringOf("n1"), digest))).state.size).toBe(12);
    expect(asked).toEqual(["n1 0 7"]);
    const alone = stage.lineAt("n2");
    await expect(alone.page(first.lines()[0]!, 0)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    const [line] = first.lines() as [string];
    const deceived = stage.lineAt("n2", { askNote: () => first.noteFor({ line, after: 0, size: 3 }) });
    await expect(deceived.page(line, 0)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    expect((await deceived.page(line, 7))!.items).toHaveLength(5);
    expect(await second.noteFor({ line, after: 0, size: 7 }), "its own key is not in that ring").toBeNull();
    expect(await first.noteFor({ line, after: 0, size: 13 }), "not applied here").toBeNull();
  });
});

describe("the proof that a site has its keys", () => {
  const asked = { id: "paris", url: "http://paris:1", receiver: "oslo" };

  test("is by a key of the line's first ring, also at a node that came later: who meets the site first knows no other", async () => {
    const stage = new OwnSiteStage(digest);
    stage.ring("n1");
    const first = stage.lineAt("n1");
    const key = (await first.prove(asked)).key;
    expect(key).toBe(stage.ringOf("n1").keys[0]!.key);
    stage.ring("n1", "n2");
    const rings: string[] = [];
    const second = stage.lineAt("n2", {
      askProof: async ({ keys }, possession) => {
        rings.push(keys.map(({ node }) => node).join());
        return first.proofFor(possession);
      },
    });
    const proof = await second.prove(asked);
    expect([proof.key, provenKey(proof, asked, verify), rings]).toEqual([key, key, ["n1"]]);
  });

  test("is by a key of the line before as well, where one is left: whoever has that line takes the next one from nobody else", async () => {
    const stage = new OwnSiteStage(digest);
    stage.ring("n1", "n2");
    const before = stage.ringOf("n1", "n2");
    stage.ring("n1", "n2", "n3");
    stage.recover();
    stage.ring("n2", "n3", "n4");
    for (const node of ["n3", "n4"]) {
      const leader = stage.lineAt(node, {
        askProof: async ({ keys }, possession) => stage.lineAt(keys[0]!.node).proofFor(possession),
      });
      const { key } = await leader.prove(asked);
      expect(
        before.keys.map((one) => one.key),
        node,
      ).toContain(key);
    }
    // Nobody of the ring before answers, or nobody of it is left.
    const alone = stage.lineAt("n4");
    expect((await alone.prove(asked)).key).toBe(stage.ringOf("n4").keys[0]!.key);
    stage.recover();
    stage.ring("n5");
    expect((await stage.lineAt("n5").prove(asked)).key).toBe(stage.ringOf("n5").keys[0]!.key);
  });

  test("is by the node's own key where nobody else answers, or with something else: whoever has the line knows it", async () => {
    const stage = new OwnSiteStage(digest);
    stage.ring("n1");
    const first = stage.lineAt("n1");
    stage.ring("n1", "n2");
    const own = stage.ringOf("n2").keys[0]!.key;
    const answers = [null, first.proofFor({ ...asked, receiver: "rome" }), { key: "x", signature: "y" }];
    for (const answer of [...answers, stage.lineAt("n3").proofFor(asked)]) {
      const second = stage.lineAt("n2", { askProof: () => Promise.resolve(answer) });
      const proof = await second.prove(asked);
      expect([proof.key, provenKey(proof, asked, verify)]).toEqual([own, own]);
    }
  });
});

describe("the head", () => {
  test("is signed once for each size, and covers no items", async () => {
    const stage = new OwnSiteStage(digest);
    stage.ring("n1");
    stage.grow(9);
    const own = stage.lineAt("n1");
    const [line] = own.lines() as [string];
    const notes = await Promise.all([own.checkpoint(line), own.checkpoint(line), own.checkpoint(line)]);
    expect([new Set(notes).size, stage.signed.length]).toEqual([1, 1]);
    const checked = checkNote(notes[0], stage.ringOf("n1"), { digest, verify });
    const { state } = await pulled(own, emptyLine(stage.ringOf("n1"), digest));
    const withheld = { after: 10, hash: "0".repeat(64) };
    expect(checked).toMatchObject({
      kind: "signed",
      checkpoint: { line, size: 10, root: rootOf(state, digest), withheld },
    });
    stage.grow(1);
    expect(await own.checkpoint(line)).not.toBe(notes[0]);
  });

  test("and proofs that the line only grew", async () => {
    const stage = new OwnSiteStage(digest);
    stage.ring("n1");
    stage.grow(40);
    const own = stage.lineAt("n1");
    const [line] = own.lines() as [string];
    const { fromRoot, root, path } = await own.consistency(line, 7, 41);
    const claim = { first: 7, second: 41, firstRoot: bytesOfHash(fromRoot), secondRoot: bytesOfHash(root) };
    expect(verifyConsistency({ ...claim, proof: path.map(bytesOfHash) }, digest)).toBe(true);
    await expect(own.consistency(line, 7, 42)).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect(await own.inclusion(line, 3, 41)).toMatchObject({ sequence: 3, treeSize: 41, root });
  });

  test("nothing is signed while something holds it, nor before there is a ring, nor by a key that is not in it", async () => {
    const stage = new OwnSiteStage(digest);
    stage.grow(2);
    const why = { now: "heads are compared" as string | null };
    const own = stage.lineAt("n1", { held: () => why.now });
    const waiting = stage.lineAt("n1", { held: () => why.now, ringWaits: () => "waiting for n2" });
    const status = { kind: "waiting", why: "waiting for n2" };
    expect([waiting.lines(), waiting.view(), waiting.status()]).toEqual([[], null, status]);
    stage.ring("n1");
    const [line] = own.lines() as [string];
    await expect(own.checkpoint(line)).rejects.toThrow(/heads are compared/);
    await expect(own.page(line, 0)).rejects.toThrow(/heads are compared/);
    await expect(own.consistency(line, 1, 2)).rejects.toThrow(/heads are compared/);
    await expect(own.inclusion(line, 1, 2)).rejects.toThrow(/heads are compared/);
    expect([own.status(), stage.signed]).toEqual([{ kind: "gated", why: "heads are compared" }, []]);
    why.now = null;
    expect((await own.page(line, 0))!.items).toHaveLength(3);
    expect(await own.checkpoint(line)).toContain(line);
    // The first peer has registered: it is compared before it is shown anything, also what was signed before.
    why.now = "heads are compared";
    await expect(own.page(line, 0)).rejects.toThrow(/heads are compared/);
    await expect(own.checkpoint(line)).rejects.toThrow(/heads are compared/);
    why.now = null;
    expect(stage.lineAt("n1").status()).toEqual({ kind: "signing" });
    const stranger = stage.lineAt("n3");
    expect(stranger.status()).toMatchObject({ kind: "not-signing", why: expect.stringContaining("n3") });
    await expect(stranger.checkpoint(line)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
  });
});

describe("after a recovery", () => {
  test("the line ends with its last event, and the next one is continued from there", async () => {
    const stage = new OwnSiteStage(digest);
    stage.ring("n1");
    stage.grow(20);
    const recovered = stage.recover();
    const own = stage.lineAt("n1");
    const [old] = own.lines() as [string];
    expect(own.status().kind, "the next ring is not written yet").toBe("waiting");
    stage.grow(3);
    stage.ring("n1");
    stage.grow(3);
    const next = own.view()!;
    expect(next.lines).toMatchObject([
      { generation: 1, after: 0, size: 21 },
      { generation: 2, after: 21, size: 29 },
    ]);
    const before = await pulled(own, emptyLine(next.lines[0]!.firstRing, digest));
    expect(before.state.size).toBe(21);
    expect((await own.page(next.line, 20))?.after).toBe(21);
    const [first] = (await own.page(next.line, 21))!.items as [string];
    const read = decodeEvent(new TextEncoder().encode(first));
    if (read.kind !== "event") throw new Error(read.problem);
    expect(read.event.sequence).toBe(recovered);
    const place = readRecovered(read.event.payload, digest)!;
    const successor = successorOf({ old: before.state, ring: next.lines[1]!.firstRing, recovered: place, digest });
    if (successor.kind !== "line") throw new Error(successor.kind);
    expect((await pulled(own, successor.state)).state.size).toBe(29);
    expect(next.line).not.toBe(old);
  });
});

test("the lines come back from a snapshot", () => {
  const stage = new OwnSiteStage(digest);
  expect(stage.fold.snapshot(), "a site without a ring has nothing that an older release could not read").toBeNull();
  stage.ring("n1");
  stage.grow(2);
  stage.ring("n1", "n2");
  stage.recover();
  const other = new OwnLineFold();
  other.restore(stage.fold.snapshot());
  expect(other.lines).toEqual(stage.fold.lines);
  expect(other.lines!.generations).toMatchObject([
    { after: 0, rings: [{ since: 1 }, { since: 4 }], end: { through: 4 } },
  ]);
  other.restore(null);
  expect(other.lines).toBeNull();
});

describe("after a disk went back", () => {
  test("a new line begins where the copy ended, with what was written before anybody knew; another site goes on from there", async () => {
    const stage = new OwnSiteStage(digest);
    stage.ring("n1");
    stage.grow(20);
    const copied = stage.point(stage.all.length);
    const { line: old } = stage.fold.lines!.generations[0]!;
    stage.grow(4);
    stage.recover(copied);
    stage.ring("n1");
    const own = stage.lineAt("n1");
    expect(own.view()!.lines).toMatchObject([
      { generation: 1, after: 0, size: 21 },
      { generation: 2, after: 21, size: 27 },
    ]);
    const ring = own.view()!.lines[1]!.firstRing;
    const start = { ...copied, line: own.view()!.line, ring, isStated: false, checkpoint: null };
    expect((await pulled(own, start)).state.size).toBe(27);
    // Of the old line a peer may have more than is here; of the new one nothing else counts.
    expect(await own.partAt(old, 100)).toMatchObject({ size: 21, isEnded: true });
    expect(await own.partAt(start.line, 27)).toMatchObject({ size: 27, isEnded: false, root: expect.any(String) });
    expect(await own.partAt(`alpha.${"0".repeat(32)}`, 1)).toBeNull();
  });
});
