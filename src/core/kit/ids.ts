// A peer is one node id together with one disk (design D5): "n1@3f9a". The incarnation is stamped when
// a data directory is created, so a wiped disk that comes back under its old node id is another peer,
// and its votes are never counted as those of the voter that was lost.

import { assert } from "./assert.ts";

declare const peerBrand: unique symbol;
/** `<node id>@<incarnation>`; compared as a plain string. */
export type PeerKey = string & { readonly [peerBrand]: true };

const PEER_PATTERN = /^[a-z0-9][a-z0-9-]{0,62}@[0-9a-f]{1,16}$/;

export function peerKey(nodeId: string, incarnation: string): PeerKey {
  const key = `${nodeId}@${incarnation}`;
  assert(PEER_PATTERN.test(key), "peer key is well-formed", () => key);
  return key as PeerKey;
}

/** For text from outside: undefined where it is not a peer key. */
export function parsePeerKey(text: string): PeerKey | undefined {
  return PEER_PATTERN.test(text) ? (text as PeerKey) : undefined;
}

export function nodeIdOf(peer: PeerKey): string {
  return peer.slice(0, peer.indexOf("@"));
}

export function incarnationOf(peer: PeerKey): string {
  return peer.slice(peer.indexOf("@") + 1);
}
