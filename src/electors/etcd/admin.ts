// What `tenure scope` asks of etcd. Reads are whole pages of keys, and values only of what is led now.

import { TenureError } from "../../core/kit/errors.ts";
import type { ScopeAdmin, ScopeRecord, TransitionRecord } from "../../ports/backends/scope-admin.ts";
import { SCOPE_PAGES_MAX } from "../../core/kit/limits.ts";
import { ASK_ATTEMPTS_MAX, PAGE_KEYS_MAX } from "../limits.ts";
import type { KeyValue } from "./answers.ts";
import { readKey } from "./follow.ts";
import { putTransition, readHistory } from "./history.ts";
import { parseKey, type ScopeKeys, scopeKeys, toBase64 } from "./keys.ts";
import { holderOf } from "./records.ts";
import type { EtcdSession } from "./session.ts";
import { guardOf } from "./term.ts";

export class EtcdAdmin implements ScopeAdmin {
  readonly #session: EtcdSession;
  readonly #prefix: string;
  readonly #wallMs: () => number;
  readonly #life = new AbortController();

  constructor(session: EtcdSession, prefix: string, wallMs: () => number) {
    this.#session = session;
    this.#prefix = prefix;
    this.#wallMs = wallMs;
  }

  async list(): Promise<ScopeRecord[]> {
    return await this.#recordsUnder(this.#prefix);
  }

  async find(scope: string): Promise<ScopeRecord | null> {
    const [record = null] = await this.#recordsUnder(this.#keys(scope).all);
    return record;
  }

  async #recordsUnder(start: string): Promise<ScopeRecord[]> {
    const records: ScopeRecord[] = [];
    for (const [scope, epoch] of await this.#lastEpochs(start)) {
      const { kv } = await readKey(this.#session, this.#keys(scope).leader, this.#life.signal);
      records.push(kv === null ? vacant(scope, epoch) : await this.#led(scope, kv));
    }
    return records;
  }

  async history(scope: string): Promise<TransitionRecord[]> {
    return await readHistory(this.#session, this.#keys(scope), this.#life.signal);
  }

  async askResign(scope: string, force: boolean): Promise<{ readonly epoch: number } | null> {
    const keys = this.#keys(scope);
    for (let attempt = 0; attempt < ASK_ATTEMPTS_MAX; attempt++) {
      const { kv } = await readKey(this.#session, keys.leader, this.#life.signal);
      if (kv === null) return null;
      const epoch = kv.createRevision;
      const success = force ? this.#takeAway(keys, kv) : [wish(keys, kv)];
      const txn = { compare: [guardOf(keys.leader, epoch)], success };
      const answer = await this.#session.txnOnLease(txn, this.#life.signal);
      if (answer?.succeeded === true) return { epoch };
    }
    throw new TenureError("BACKEND_UNAVAILABLE", `the leader of scope "${scope}" changes all the time. Ask again.`);
  }

  async close(): Promise<void> {
    this.#life.abort();
    this.#session.close();
  }

  /** Each scope's last epoch, by name: from the leader's key, or from the record of the last win. */
  async #lastEpochs(start: string): Promise<[string, number][]> {
    const epochs = new Map<string, number>();
    let from = start;
    for (let page = 0; page < SCOPE_PAGES_MAX; page++) {
      const options = { keys_only: true, limit: String(PAGE_KEYS_MAX) };
      const { kvs, more } = await this.#session.scan(start, from, options, this.#life.signal);
      for (const { key, createRevision } of kvs) {
        const parsed = parseKey(this.#prefix, key);
        if (parsed === undefined) continue;
        const grants = parsed.name === "leader" || parsed.name.endsWith("-acquired");
        epochs.set(parsed.scope, Math.max(epochs.get(parsed.scope) ?? 0, grants ? createRevision : 0));
      }
      if (!more) break;
      from = `${kvs.at(-1)?.key ?? from}\0`;
    }
    return [...epochs].toSorted(([a], [b]) => (a < b ? -1 : 1));
  }

  async #led(scope: string, kv: KeyValue): Promise<ScopeRecord> {
    const { identity, metadata, acquiredAtMs } = holderOf(kv);
    const ageSeconds = kv.lease === "0" ? null : await this.#session.leaseAgeSeconds(kv.lease, this.#life.signal);
    const heartbeatAtMs = ageSeconds === null ? null : this.#wallMs() - ageSeconds * 1_000;
    return { scope, epoch: kv.createRevision, identity, metadata, acquiredAtMs, heartbeatAtMs };
  }

  #takeAway(keys: ScopeKeys, kv: KeyValue): object[] {
    const { identity, acquiredAtMs } = holderOf(kv);
    const atMs = this.#wallMs();
    const heldMs = acquiredAtMs === null ? null : Math.max(0, atMs - acquiredAtMs);
    const record = { atMs, epoch: kv.createRevision, identity, reason: "forced", heldMs };
    return [{ request_delete_range: { key: toBase64(keys.leader) } }, putTransition(keys, kv.lease, record)];
  }

  #keys(scope: string): ScopeKeys {
    return scopeKeys(this.#prefix, scope);
  }
}

/** On the leader's lease: a wish does not outlive whom it is for. */
function wish(keys: ScopeKeys, kv: KeyValue): object {
  return { request_put: { key: toBase64(keys.resign), value: toBase64(String(kv.createRevision)), lease: kv.lease } };
}

function vacant(scope: string, epoch: number): ScopeRecord {
  return { scope, epoch, identity: null, metadata: {}, acquiredAtMs: null, heartbeatAtMs: null };
}
