// Electors over a real etcd, closed when the test is over.

import { onTestFinished } from "vitest";
import { etcd, type EtcdTerm } from "../../src/entry/etcd.ts";
import { createElector, type Elector, type Transition } from "../../src/entry/index.ts";

export type { Elector, EtcdTerm };

export function electorAt(
  endpoints: string | readonly string[],
  scope: string,
  ttlSeconds: number,
  onTransition?: (transition: Transition) => void,
): Elector<EtcdTerm> {
  const elector = createElector({ scope, backend: etcd({ endpoints, ttlSeconds }), onTransition });
  onTestFinished(() => elector.close());
  return elector;
}
