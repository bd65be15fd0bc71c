// The control on etcd: the child of `etcdctl lock`. It runs because the lock is held, so it leads until it is ended,
// and no write asks etcd whether it may.

import { ask, putsOf, readLanes } from "./etcd-keys.ts";
import type { WorkerConfig } from "./messages.ts";
import type { Office } from "./office.ts";

export function etcdctlOffice(config: WorkerConfig): Office {
  const { url } = config;
  const epoch = Date.now();
  return {
    lead: (work, signal) =>
      work({
        epoch,
        signal,
        isOpen: () => true,
        read: () => readLanes(url, config.lanes),
        write: async (increment, think) => {
          await think();
          await ask(url, "kv/txn", { success: putsOf(increment, epoch) });
        },
        outcomeOf: () => "unknown",
        busy: async () => undefined,
      }),
    stale: undefined,
    newest: async () => 0,
    close: async () => undefined,
  };
}
