// Values: small documents, read on every node and written by the leader, under the conditions that a write names.

import { toSnake } from "../../contract/index.ts";
import { TenureError, VersionConflictError } from "../../core/kit/errors.ts";
import { VALUES_PER_PAGE_MAX } from "../../core/kit/limits.ts";
import type { ValueFence, ValueView } from "../../ports/values.ts";
import { valueWire } from "../streams/value-frames.ts";
import { ValueStreams } from "../streams/value-stream.ts";
import type { Handlers, Service } from "./handler.ts";
import { beFresh } from "./reads.ts";
import { noLeader, Refusal } from "../refusal.ts";

type Ids = "values" | "value" | "putValue" | "deleteValue" | "watchValues";

export function valueHandlers(service: Service): Pick<Handlers, Ids> {
  const { values } = service;
  const streams = new ValueStreams(service);
  return {
    values: async ({ query, inTurn }) => {
      // Before its turn: who waits for a leader takes none.
      await beFresh(service, query);
      const { prefix = "", after = null, limit = VALUES_PER_PAGE_MAX } = query;
      return inTurn(async () => {
        const { values: found, next, asOf } = values.list({ prefix, after, limit });
        const body = JSON.stringify({ values: found.map((one) => valueShown(one)), next, as_of: asOf });
        return { body, contentType: "application/json; charset=utf-8" };
      });
    },
    value: async ({ params, query }) => {
      await beFresh(service, query);
      const found = values.get(params.name);
      if (found === null) throw unknown(params.name);
      return { body: valueShown(found) };
    },
    putValue: async ({ params: { name }, body }) => {
      const condition = { ifVersion: body.if_version ?? null, fence: fenceOf(body) };
      return { body: await named(name, values.put({ name, value: body.value, ...condition })) };
    },
    deleteValue: async ({ params: { name }, query }) => {
      const condition = { ifVersion: query.if_version ?? null, fence: fenceOf(query) };
      return { body: toSnake(await named(name, values.delete({ name, ...condition }))) };
    },
    watchValues: async (call) => {
      const { prefix = "" } = call.query;
      return streams.open(() => startOf(service, prefix, call.query.after, call.header("last-event-id")), {
        prefix,
        isStillAdmitted: call.isStillAdmitted,
        takeStream: call.takeStream,
      });
    },
  };
}

/** A change never changes; whether a value is locked does. */
function valueShown(value: ValueView): object {
  const { pendingTxn } = value;
  return { ...valueWire(value), ...(pendingTxn === null ? {} : { pending_txn: pendingTxn }) };
}

interface Fence {
  readonly scope?: string | undefined;
  readonly epoch?: number | undefined;
}

/** An epoch is one of a scope: half of a fence checks nothing. */
function fenceOf({ scope, epoch }: Fence): ValueFence | null {
  if (scope === undefined && epoch === undefined) return null;
  if (scope !== undefined && epoch !== undefined) return { scope, epoch };
  const [given, missing] = scope === undefined ? ["epoch", "scope"] : ["scope", "epoch"];
  throw new Refusal("BAD_REQUEST", `${missing} is missing: ${given} alone fences nothing. Send both, or neither.`, {
    field: missing,
  });
}

/** A conflict names the version that there is, which whoever tries again must have seen. */
async function named<T>(name: string, written: Promise<T>): Promise<T> {
  try {
    return await written;
  } catch (error) {
    if (!VersionConflictError.is(error)) throw error;
    throw new Refusal("VERSION_CONFLICT", error.message, { name, version: error.version });
  }
}

function unknown(name: string): Refusal {
  return new Refusal("NOT_FOUND", `There is no value ${JSON.stringify(name)}, as far as this node knows.`, { name });
}

/**
 * The header counts before the query: a browser that reconnects sends both. Without either: with what comes from now on. A node that lags behind the
 * reader catches up first; a version that nobody was given is none that can be resumed (null).
 */
async function startOf(
  { values, cluster, limits }: Service,
  prefix: string,
  after: number | undefined,
  header: string | undefined,
): Promise<number | null> {
  const asOf = (): number => values.list({ prefix, after: null, limit: 1 }).asOf;
  const version = header === undefined ? after : versionOf(header);
  if (version === undefined) return asOf();
  if (version <= asOf()) return version;
  if (!(await cluster.catchUp(limits.catchUpTimeoutMs))) throw noLeader(cluster.view());
  return version <= asOf() ? version : null;
}

function versionOf(header: string): number {
  if (/^\d{1,16}$/.test(header) && Number.isSafeInteger(Number(header))) return Number(header);
  throw new TenureError("BAD_REQUEST", "Last-Event-ID must be a version, as the ids of this stream are.", {
    field: "Last-Event-ID",
  });
}
