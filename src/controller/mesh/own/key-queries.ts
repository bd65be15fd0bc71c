// What the members of a site ask each other for its line: the public key of a node, for the ring, a note that only a node with a key
// of an earlier ring can sign, a proof that only such a node can give, and whether the line was compared with the peers since that node runs. Best effort: a node that does not understand answers nothing.

import type { PeerKey } from "../../../core/kit/ids.ts";
import { QUERY_BYTES_MAX } from "../../../core/kit/limits.ts";
import type { Possession, PossessionProof } from "../../../core/mesh/registry/index.ts";
import type { Answering, PeerQueries } from "../../../ports/peers/queries.ts";
import type { NoteAsked } from "./own-line.ts";

/** They begin with no number of another query (core/archive). */
const KEY = "tenure/mesh-key";
const COMPARED = "tenure/mesh-compared";
const NOTE = "tenure/mesh-note ";
const PROOF = "tenure/mesh-proof ";
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** What this node answers. */
export interface MeshAnswers {
  readonly publicKey: string;
  /** The own line was compared with every peer, since this process started or some member of the site did that still runs. */
  readonly isCompared: () => boolean;
  noteFor(asked: NoteAsked): Promise<string | null>;
  /** Null: it is not of this site. */
  proofFor(possession: Possession): PossessionProof | null;
}

type Asking = Pick<PeerQueries, "ask">;

/** The public key of a member in base64; null: it does not answer. Not checked. */
export async function askKey(peers: Asking, peer: PeerKey): Promise<string | null> {
  const answer = await peers.ask(peer, encoder.encode(KEY));
  return answer === null ? null : decoder.decode(answer);
}

/** False where it does not answer. */
export async function askCompared(peers: Asking, peer: PeerKey): Promise<boolean> {
  const answer = await peers.ask(peer, encoder.encode(COMPARED));
  return answer !== null && decoder.decode(answer) === "yes";
}

/** Not checked. */
export async function askNote(peers: Asking, peer: PeerKey, { line, after, size }: NoteAsked): Promise<string | null> {
  const answer = await peers.ask(peer, encoder.encode(`${NOTE}${line} ${after} ${size}`));
  return answer === null ? null : decoder.decode(answer);
}

/** Not checked. */
export async function askProof(
  peers: Asking,
  peer: PeerKey,
  { id, url, receiver }: Possession,
): Promise<PossessionProof | null> {
  const query = encoder.encode(`${PROOF}${id}\n${url}\n${receiver}`);
  // An address may be longer than a question: this node proves with its own key, then.
  const answer = query.length > QUERY_BYTES_MAX ? null : await peers.ask(peer, query);
  if (answer === null) return null;
  const [key = "", signature = ""] = decoder.decode(answer).split("\n");
  return { key, signature };
}

/** What a node answers: these questions, once there is somebody to answer them, and all `others`. */
export function withMeshAnswers(mesh: () => MeshAnswers | null, others: Answering): Answering {
  return async (from, query) => {
    const text = query[0] === KEY.charCodeAt(0) ? decoder.decode(query) : "";
    if (text === KEY) {
      const key = mesh()?.publicKey;
      return key === undefined ? null : encoder.encode(key);
    }
    if (text === COMPARED) return encoder.encode(mesh()?.isCompared() === true ? "yes" : "no");
    if (text.startsWith(PROOF)) {
      const [id = "", url = "", receiver = ""] = text.slice(PROOF.length).split("\n");
      const proof = mesh()?.proofFor({ id, url, receiver }) ?? null;
      return proof === null ? null : encoder.encode(`${proof.key}\n${proof.signature}`);
    }
    if (!text.startsWith(NOTE)) return others(from, query);
    const [line = "", after, size] = text.slice(NOTE.length).split(" ");
    const asked = { line, after: Number(after), size: Number(size) };
    const isPlace = Number.isSafeInteger(asked.after) && Number.isSafeInteger(asked.size) && asked.after >= 0;
    if (!isPlace) return null;
    const note = await mesh()
      ?.noteFor(asked)
      .catch(() => null);
    return note === null || note === undefined ? null : encoder.encode(note);
  };
}
