// Whether one that dialled us is let in. It decides from the hello, its certificate and what we are, and changes nothing.

import { type Ack, commonProtocol, type Hello, type Introduction, PROTOCOL_MAX, type Refuse } from "./hello.ts";

export type Verdict =
  | { readonly kind: "accept"; readonly ack: Ack }
  /** It only wants to know; it is told, and the connection ends. */
  | { readonly kind: "answer"; readonly ack: Ack }
  | ({ readonly kind: "refuse" } & Refuse);

export interface Bench {
  readonly us: Introduction;
  /** The engine is there. */
  readonly isStarted: boolean;
  readonly hasRoomForBulk: () => boolean;
  /** Whom we are connected to. */
  readonly peers: Ack["peers"];
  readonly isRemoved: () => boolean;
  /** Another process has shaken hands with this disk since this one did. */
  readonly isCopy: () => boolean;
}

/** `certified`: the node id of its certificate; null without one. */
export function judge(hello: Hello, certified: string | null, bench: Bench): Verdict {
  const { us, peers } = bench;
  if (certified !== null && certified !== hello.nodeId) {
    return refuse("id-of-another", `it says that it is ${hello.nodeId}, and its certificate is that of ${certified}`);
  }
  if (hello.nodeId === us.nodeId) {
    const message = `${us.nodeId} is the id of both: an address leads back to the node itself, or two nodes share one id`;
    return refuse("own-node-id", message);
  }
  const protocol = commonProtocol(hello.protocolMin, hello.protocolMax) ?? PROTOCOL_MAX;
  const ack: Ack = { ...us, protocol, peers };
  if (hello.purpose === "ask") return { kind: "answer", ack };
  if (hello.clusterId !== us.clusterId) {
    const message = `${hello.nodeId} is of cluster ${hello.clusterId}, ${us.nodeId} of cluster ${us.clusterId}; check "peers" and the data directory of the one that is wrong`;
    return refuse("other-cluster", message);
  }
  if (hello.leaseEnabled !== us.leaseEnabled) return refuse("lease-mismatch", leaseMismatch(hello, us));
  if (!bench.isStarted) return refuse("starting", `${us.nodeId} is starting, or stopping`);
  if (bench.isRemoved()) return refuse("removed", removedText(`${hello.nodeId}@${hello.incarnation}`));
  if (bench.isCopy()) {
    const message = `another process speaks for the disk ${hello.nodeId}@${hello.incarnation} since this one did: there are two copies of it, and both might vote. Stop one of them for good, and empty its data directory`;
    return refuse("cloned-disk", message);
  }
  if (hello.purpose === "bulk" && !bench.hasRoomForBulk()) return refuse("too-many", "a bulk is under way already");
  return { kind: "accept", ack };
}

export function removedText(peer: string): string {
  return `the disk ${peer} was removed from this cluster. Stop that node; to add it again, start it with an empty data directory`;
}

/** A node that trusts the lease and one that breaks it would allow two leaders, so it is all or none. */
export function leaseMismatch(one: Introduction, other: Introduction): string {
  const [on, off] = one.leaseEnabled ? [one, other] : [other, one];
  return `the leader lease is enabled on ${on.nodeId} and disabled on ${off.nodeId}; enable it on all voters or none`;
}

function refuse(reason: Refuse["reason"], message: string): Verdict {
  return { kind: "refuse", reason, message };
}
