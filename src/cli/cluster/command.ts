// `tenure cluster status|elections|transfer|drain|snapshot`: what an operator asks of Tenure's own servers, and the steps that
// change who leads them. Everything but `snapshot verify` talks to the servers' API as any other client does.

import { CLUSTER } from "./help.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { assertNever } from "../../core/kit/assert.ts";
import { ERRORS, TenureError } from "../../core/kit/errors.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import type { Client } from "../../client/index.ts";
import { clientOf, type Connection, readConnection, refuseStrangers } from "../connection/connection.ts";
import { saveBackup } from "./backup.ts";
import { drainNode } from "./drain.ts";
import { readClusterFlags } from "./flags.ts";
import {
  saveSnapshot,
  snapshotObject,
  snapshotText,
  type SnapshotFile,
  verifyHistory,
  verifySnapshot,
} from "./snapshot.ts";
import {
  electionObject,
  electionsNote,
  electionsOf,
  electionsTable,
  statusObject,
  statusOf,
  statusText,
} from "./view.ts";
import { oneOf } from "../kit/flags.ts";
import { duration, isoTime, json, OUTPUTS } from "../kit/output.ts";
import { untilSignal } from "../kit/until-signal.ts";
import { HAND_OVER_LIMIT_MS, WATCH_EVERY_MS } from "../limits.ts";
import { printed, stdoutPaint, warn } from "../kit/print.ts";

const CLEAR_SCREEN = "\u001B[H\u001B[J";

export async function cluster(args: readonly string[]): Promise<number> {
  const flags = readClusterFlags(args);
  if (flags === "help") return printed(CLUSTER.help);
  const { step } = flags;
  // Offline: neither a key nor a certificate is looked for.
  if (step.verb === "snapshot-verify") return await verify(step.file, step.history, flags.connection.output);
  const connection = await readConnection(flags.connection, process.env);
  switch (step.verb) {
    case "status":
      return step.watch ? await watch(connection) : await status(connection);
    case "elections":
      return await elections(connection);
    case "transfer":
      return await transfer(connection, step.to, step.force);
    case "resume":
      return await resume(connection);
    case "drain":
      return await drainNode(connection, step);
    case "snapshot-save":
      return await save(connection, async (client, signal) => {
        const saved = await saveSnapshot(client, step.file, { force: step.force, signal });
        return { saved, object: snapshotObject(saved) };
      });
    case "snapshot-keep":
      return await save(connection, async (client, signal) => {
        const { directory, keep } = step;
        const saved = await saveBackup(client, directory, { keep, signal, nowMs: systemClock.wallMs() });
        return { saved, object: { ...snapshotObject(saved), removed: saved.removed } };
      });
    default:
      return assertNever(step, "cluster");
  }
}

interface Saving {
  readonly saved: SnapshotFile;
  readonly object: object;
}

async function save(
  connection: Connection,
  work: (client: Client, signal: AbortSignal) => Promise<Saving>,
): Promise<number> {
  const end = untilSignal();
  try {
    const { saved, object } = await work(clientOf(connection), end.signal);
    process.stdout.write(connection.output === "json" ? json(object) : snapshotText(saved));
    for (const text of savedWarnings(saved)) {
      warn(text);
    }
    return 0;
  } catch (error) {
    if (!end.signal.aborted) throw error;
    return end.code;
  }
}

function savedWarnings({ url, index, isFollowers, unreported }: SnapshotFile): string[] {
  const follower = `${url} does not lead, and no node that does was reached: the file ends with its index ${index}, and the cluster may have more. Give the URLs of all nodes`;
  const unknown = `the file is whole, but ${url} does not know that it is stored, and its metric does not show it: ${unreported}`;
  return [...(isFollowers ? [follower] : []), ...(unreported === null ? [] : [unknown])];
}

async function verify(file: string, history: string | undefined, outputFlag: string | undefined): Promise<number> {
  const output = oneOf("-o", outputFlag ?? "table", OUTPUTS);
  const found = await verifySnapshot(file);
  const copies = history === undefined ? null : await verifyHistory(file, history);
  const object = { ...snapshotObject(found), ...(copies === null ? {} : { history: copies.object }) };
  process.stdout.write(output === "json" ? json(object) : `${snapshotText(found)}${copies?.text ?? ""}`);
  return copies?.isWhole === false ? ERRORS.SNAPSHOT_INVALID.exit : 0;
}

async function status(connection: Connection): Promise<number> {
  const answers = await clientOf(connection).nodes();
  refuseStrangers(answers);
  const found = statusOf(answers);
  process.stdout.write(connection.output === "json" ? json(statusObject(found)) : statusText(found, stdoutPaint()));
  return found.leader === null ? ERRORS.ERR_NO_LEADER.exit : 0;
}

async function watch(connection: Connection): Promise<number> {
  const end = untilSignal();
  const client = clientOf(connection);
  const isScreen = process.stdout.isTTY && connection.output === "table";
  try {
    for (;;) {
      const found = statusOf(await client.nodes({ signal: end.signal }));
      const at = isoTime(systemClock.wallMs());
      if (connection.output === "json") process.stdout.write(json({ at, ...statusObject(found) }));
      else
        process.stdout.write(
          `${isScreen ? CLEAR_SCREEN : ""}${at}\n${statusText(found, stdoutPaint())}${isScreen ? "" : "\n"}`,
        );
      await sleep(WATCH_EVERY_MS, undefined, { signal: end.signal });
    }
  } catch (error) {
    if (!end.signal.aborted) throw error;
  }
  return end.code;
}

async function elections(connection: Connection): Promise<number> {
  const answers = await clientOf(connection).nodes();
  refuseStrangers(answers);
  const silent = answers.filter(({ view }) => view === null);
  if (silent.length === answers.length) {
    const each = silent.map(({ url, why }) => `${url}: ${why}`);
    throw new TenureError("BACKEND_UNAVAILABLE", `no server answers: ${each.join("; ")}.`);
  }
  const found = electionsOf(answers);
  const isJson = connection.output === "json";
  const note = electionsNote(answers);
  if (isJson) process.stdout.write(json({ elections: found.map(electionObject) }));
  else if (note === null) process.stdout.write(electionsTable(found, stdoutPaint()));
  if (note !== null) process.stderr.write(`tenure: ${note}\n`);
  // Each node remembers its own campaigns, so what a silent one did is missing.
  for (const { url, why } of silent) process.stderr.write(`tenure: without those of ${url}: ${why}\n`);
  return 0;
}

async function resume(connection: Connection): Promise<number> {
  const { clusterId, isPaused } = await clientOf(connection).resume();
  const object = { cluster_id: clusterId, paused: isPaused };
  const text = `cluster ${clusterId} is not paused: jobs are leased, schedules fire, scopes are granted\n`;
  return printed(connection.output === "json" ? json(object) : text);
}

async function transfer(connection: Connection, target: string | undefined, force: boolean): Promise<number> {
  const client: Client = clientOf(connection, HAND_OVER_LIMIT_MS);
  const startedMs = systemClock.monotonicMs();
  const { success, message, oldLeaderId, newLeaderId } = await client.transfer({ target, force });
  const tookMs = systemClock.monotonicMs() - startedMs;
  const object = {
    success,
    message,
    old_leader_id: oldLeaderId,
    new_leader_id: newLeaderId,
    forced: force,
    took_ms: Math.round(tookMs),
  };
  if (connection.output === "json") process.stdout.write(json(object));
  else if (success) process.stdout.write(`${oldLeaderId} → ${newLeaderId ?? "?"} in ${duration(tookMs)}\n`);
  else process.stderr.write(`tenure: ${oldLeaderId} still leads: ${message}\n`);
  return success ? 0 : ERRORS.ERR_LEADER_TRANSFER_FAILED.exit;
}
