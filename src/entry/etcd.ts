// `tenure/etcd`: leadership in your etcd, over its JSON gateway. No package next to this one is needed.

import { hostname } from "node:os";
import { httpWire } from "../drivers/etcd/index.ts";
import { requireNode } from "../drivers/system/host.ts";
import { type EtcdBackend, etcdBackend, type EtcdOptions, etcdSettings } from "../electors/etcd/index.ts";

export type {
  EtcdBackend,
  EtcdGuard,
  EtcdOptions,
  EtcdTerm,
  EtcdTls,
  EtcdTxn,
  EtcdTxnResult,
} from "../electors/etcd/index.ts";

requireNode();

/** One URL, several, or options. Does no I/O; throws CONFIG_INVALID where the options are wrong. */
export function etcd(options: string | readonly string[] | EtcdOptions): EtcdBackend {
  const settings = etcdSettings(options);
  const { endpoints, headers, tls } = settings;
  return etcdBackend(settings, {
    host: `${hostname()}-${process.pid}`,
    wallMs: Date.now,
    connect: () => httpWire({ endpoints, headers, tls }),
  });
}
