// Configurations and peer keys, as bytes and back: in snapshots, in the log's segments and in messages.
//
//   voters | outgoing voters | learners | next learners | u8 flags | removed disks, if there are any
//
// The read… functions throw a DecodeError, and are for callers that catch it.

import { assert } from "../../kit/assert.ts";
import { type ByteReader, type ByteWriter, DecodeError } from "../../kit/bytes.ts";
import { parsePeerKey, type PeerKey } from "../../kit/ids.ts";
import { MEMBERS_MAX, PEER_KEY_BYTES_MAX, REMOVED_MAX } from "../../kit/limits.ts";
import { checkConfiguration } from "./membership.ts";
import type { Configuration } from "../types.ts";

/** Of a configuration. Releases before tombstones wrote the first alone, as a boolean: their bytes mean the same. */
const AUTO_LEAVE = 1;
const HAS_REMOVED = 2;

export function writeConfiguration(w: ByteWriter, configuration: Configuration): void {
  const broken = checkConfiguration(configuration);
  assert(broken === null, "configuration is well-formed", () => String(broken));
  writePeers(w, configuration.voters);
  writePeers(w, configuration.votersOutgoing);
  writePeers(w, configuration.learners);
  writePeers(w, configuration.learnersNext);
  const removed = configuration.removed ?? [];
  w.u8((configuration.autoLeave ? AUTO_LEAVE : 0) | (removed.length > 0 ? HAS_REMOVED : 0));
  if (removed.length > 0) writePeers(w, removed);
}

export function readConfiguration(r: ByteReader): Configuration {
  const lists = {
    voters: readPeers(r),
    votersOutgoing: readPeers(r),
    learners: readPeers(r),
    learnersNext: readPeers(r),
  };
  const flags = r.u8();
  if (flags > (AUTO_LEAVE | HAS_REMOVED)) throw new DecodeError("malformed", `flags ${flags}`);
  const autoLeave = (flags & AUTO_LEAVE) !== 0;
  const removed = (flags & HAS_REMOVED) !== 0 ? readPeers(r, REMOVED_MAX) : [];
  const configuration = removed.length > 0 ? { ...lists, autoLeave, removed } : { ...lists, autoLeave };
  const broken = checkConfiguration(configuration);
  if (broken !== null) throw new DecodeError("malformed", broken);
  return configuration;
}

export function readPeer(r: ByteReader): PeerKey {
  const peer = parsePeerKey(r.text(PEER_KEY_BYTES_MAX));
  if (peer === undefined) throw new DecodeError("malformed", "not a peer key");
  return peer;
}

export function writePeers(w: ByteWriter, peers: readonly PeerKey[]): void {
  w.u8(peers.length);
  for (const peer of peers) w.text(peer);
}

export function readPeers(r: ByteReader, countMax = MEMBERS_MAX): PeerKey[] {
  const count = r.u8();
  if (count > countMax) throw new DecodeError("malformed", `${count} peers`);
  const peers: PeerKey[] = [];
  for (let i = 0; i < count; i++) peers.push(readPeer(r));
  return peers;
}
