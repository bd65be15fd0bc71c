import { expect, test } from "vitest";
import type { PeerKey } from "../../../core/kit/ids.ts";
import { QUERY_BYTES_MAX } from "../../../core/kit/limits.ts";
import { askKey, askNote, askProof, type MeshAnswers, withMeshAnswers } from "./key-queries.ts";
import type { NoteAsked } from "./own-line.ts";

const PEER = "n2@1" as PeerKey;
const OTHER = Uint8Array.of(9);
const others = (): Promise<Uint8Array | null> => Promise.resolve(OTHER);

/** As if the other node were asked. */
function peersOf(mesh: MeshAnswers | null) {
  const answering = withMeshAnswers(() => mesh, others);
  return { ask: (_peer: PeerKey, query: Uint8Array) => answering(PEER, query) };
}

function answers(noteFor: MeshAnswers["noteFor"]): MeshAnswers {
  const proofFor: MeshAnswers["proofFor"] = ({ id, receiver }) =>
    id === "paris" ? { key: "a key", signature: receiver } : null;
  return { publicKey: "a key", isCompared: () => true, noteFor, proofFor };
}

test("a node answers with its key and with notes, once it can", async () => {
  const asked: NoteAsked[] = [];
  const peers = peersOf(
    answers(async (one) => {
      asked.push(one);
      return one.size === 7 ? "a note" : null;
    }),
  );
  expect(await askKey(peers, PEER)).toBe("a key");
  expect(await askNote(peers, PEER, { line: "a.b", after: 3, size: 7 })).toBe("a note");
  expect(await askNote(peers, PEER, { line: "a.b", after: 3, size: 8 })).toBeNull();
  expect(asked).toEqual([
    { line: "a.b", after: 3, size: 7 },
    { line: "a.b", after: 3, size: 8 },
  ]);
  expect(await askKey(peersOf(null), PEER)).toBeNull();
  expect(await askNote(peersOf(null), PEER, { line: "a.b", after: 3, size: 7 })).toBeNull();
});

test("a node proves for another one that their site has its keys, and for no other site", async () => {
  const peers = peersOf(answers(() => Promise.resolve(null)));
  const asked = { id: "paris", url: "http://paris:1", receiver: "oslo" };
  expect(await askProof(peers, PEER, asked)).toEqual({ key: "a key", signature: "oslo" });
  expect(await askProof(peers, PEER, { ...asked, id: "berlin" })).toBeNull();
  expect(await askProof(peersOf(null), PEER, asked)).toBeNull();
});

test("a proof that does not fit into a question is not asked for: the connection takes no longer one", async () => {
  const sizes: number[] = [];
  const peers = peersOf(answers(() => Promise.resolve(null)));
  const ask = (peer: PeerKey, query: Uint8Array) => {
    sizes.push(query.length);
    return peers.ask(peer, query);
  };
  const [id, receiver] = ["paris", "oslo"];
  const rest = `tenure/mesh-proof ${id}\n\n${receiver}`.length;
  const asked = (length: number) => askProof({ ask }, PEER, { id, url: "u".repeat(length), receiver });
  expect(await asked(QUERY_BYTES_MAX - rest)).not.toBeNull();
  for (const length of [QUERY_BYTES_MAX - rest + 1, 512]) expect(await asked(length)).toBeNull();
  expect(sizes).toEqual([QUERY_BYTES_MAX]);
});

test("a note that can't be made is no answer, and neither is nonsense", async () => {
  const failing = answers(() => Promise.reject(new Error("not here")));
  expect(await askNote(peersOf(failing), PEER, { line: "a.b", after: 3, size: 7 })).toBeNull();
  for (const text of ["a.b x 7", "a.b -1 7", "a.b 1 1e99", ""]) {
    const query = new TextEncoder().encode(`tenure/mesh-note ${text}`);
    const answering = withMeshAnswers(() => answers(() => Promise.resolve("a note")), others);
    expect(await answering(PEER, query)).toBeNull();
  }
});

test("all other questions are the others' to answer", async () => {
  const answering = withMeshAnswers(() => answers(() => Promise.resolve("a note")), others);
  for (const query of [Uint8Array.of(1, 2), new TextEncoder().encode("tenure/empty-worker"), new Uint8Array(0)]) {
    expect(await answering(PEER, query)).toBe(OTHER);
  }
});
