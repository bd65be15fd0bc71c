// The same consensus for whoever owns a machine inside of another: what it proposes carries one byte in front, by which
// the outer machine hands it on. An entry costs one byte more, so the largest is ENTRY_BYTES_MAX less one.

import type { Consensus } from "../../ports/consensus.ts";

export function taggedConsensus(consensus: Consensus, tag: number): Consensus {
  return {
    peer: consensus.peer,
    status: () => consensus.status(),
    propose: (data) => consensus.propose(data.map((one) => tagged(one, tag))),
    changeMembership: (change) => consensus.changeMembership(change),
    replace: (nodeId) => consensus.replace(nodeId),
    clearDisks: (cleared) => consensus.clearDisks(cleared),
    readIndex: (timeoutMs) => consensus.readIndex(timeoutMs),
    transfer: (target, force) => consensus.transfer(target, force),
    setWilling: (willing) => consensus.setWilling(willing),
    campaign: () => consensus.campaign(),
    reelect: () => consensus.reelect(),
    stepDown: () => consensus.stepDown(),
    followerOf: (peer) => consensus.followerOf(peer),
    membersKnownTo: (peer) => consensus.membersKnownTo(peer),
    subscribe: (listener) => consensus.subscribe(listener),
  };
}

function tagged(data: Uint8Array, tag: number): Uint8Array {
  const entry = new Uint8Array(1 + data.length);
  entry[0] = tag;
  entry.set(data, 1);
  return entry;
}
