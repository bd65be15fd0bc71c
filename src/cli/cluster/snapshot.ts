// Snapshots as files: fetched from a server and checked before they get their name, or checked alone, without a server.
// Checked is the file (its checksums) and what is in it: a server must be able to read its state.

import { readFile, stat } from "node:fs/promises";
import { assert } from "../../core/kit/assert.ts";
import { type ErrorCode, TenureError } from "../../core/kit/errors.ts";
import type { Configuration } from "../../core/raft/index.ts";
import { decodeSnapshotFile } from "../../core/wal/index.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import type { Client } from "../../client/index.ts";
import { refuseStrangers } from "../connection/connection.ts";
import { NewFile } from "../files/whole.ts";
import { bytesText, statusOf } from "./view.ts";
import { columns } from "../kit/output.ts";
import { SAVE_LIMIT_MS, SNAPSHOT_FILE_BYTES_MAX } from "../limits.ts";
import { EVENTS, RECEIPTS } from "../../logs/index.ts";
import { serverMachine } from "../../node/assembly/machine.ts";
import { copiesIn, copiesNote } from "../../node/worlds/restore-history.ts";

/** How a node refuses its view to who may save a snapshot: where nobody leads, it can't say whether the role has changed. */
const UNSEEN: readonly ErrorCode[] = ["PERMISSION_DENIED", "CALLER_UNCONFIRMED"];

export interface SnapshotFile {
  readonly file: string;
  readonly bytes: number;
  readonly index: number;
  readonly term: number;
  readonly configuration: Configuration;
  /** Where it came from; null of a file that was only checked. */
  readonly url: string | null;
  /** Why its node does not know that the file is stored (the metric of the last backup); null: it was, or nothing was saved. */
  readonly unreported: string | null;
  /** It did not lead: what the cluster wrote meanwhile may be missing. */
  readonly isFollowers: boolean;
}

export async function verifySnapshot(file: string): Promise<SnapshotFile> {
  const bytes = await contentsOf(file);
  const found = decodeSnapshotFile(bytes, systemDigest);
  switch (found.kind) {
    case "whole": {
      const { index, term, configuration } = found.meta;
      checkState(file, found.data);
      return { file, bytes: bytes.length, index, term, configuration, url: null, unreported: null, isFollowers: false };
    }
    case "newer":
      throw new TenureError(
        "FORMAT_UNSUPPORTED",
        `${file} has format version ${found.version}, which this release can't read; use the release that wrote it, or a newer one.`,
      );
    default:
      throw new TenureError(
        "SNAPSHOT_INVALID",
        `${file} is not a whole snapshot: ${found.why}. Do not restore from it; fetch it again.`,
      );
  }
}

/** With which event the history would begin that is restored from this file and these copies. */
export async function verifyHistory(file: string, directory: string) {
  const found = decodeSnapshotFile(await contentsOf(file), systemDigest);
  assert(found.kind === "whole", "history is checked beside a snapshot that was found whole");
  const usable = await copiesIn(directory, found.data, EVENTS);
  const receipts = await copiesIn(directory, found.data, RECEIPTS);
  const { firstEvent, segments } = usable;
  const unusable = [usable, receipts].filter((one) => one.why !== null);
  const why = unusable[0]?.why ?? null;
  const note = unusable.map((one) => `${copiesNote(directory, one)}\n`).join("");
  return {
    isWhole: why === null,
    object: { directory, first_event: firstEvent, segments, why },
    text: `${columns([["history", `from event ${firstEvent} on, with ${segments} of the segments in ${directory}`]])}${note}`,
  };
}

/** As a server does that starts from it. */
function checkState(file: string, data: Uint8Array): void {
  try {
    serverMachine(systemDigest).machine.restore(data);
  } catch (error) {
    if (!TenureError.is(error)) throw error;
    throw new TenureError(
      error.code,
      `${file} is whole, but its state can't be used: ${error.message}. Do not restore from it.`,
      { cause: error },
    );
  }
}

export interface SaveOptions {
  /** A file that is there is replaced. */
  readonly force: boolean;
  /** Gives up, and leaves nothing behind. */
  readonly signal: AbortSignal;
}

export async function saveSnapshot(
  client: Client,
  file: string,
  { force, signal }: SaveOptions,
): Promise<SnapshotFile> {
  // First: what can't be written here is no reason to make a server work.
  const target = await NewFile.open(file, force);
  try {
    const { url, isFollowers } = await nodeThatSaved(client, signal);
    for await (const chunk of downloaded(client, url, signal)) await target.write(chunk);
    await target.sync();
    const found = await verifySnapshot(target.part);
    signal.throwIfAborted();
    await target.name();
    return { ...found, file, url, isFollowers, unreported: await reported(client, url, found.index, signal) };
  } finally {
    await target.close();
  }
}

/** The file is whole, whatever comes of this: only the cluster's own metric does not show it. */
async function reported(client: Client, url: string, index: number, signal: AbortSignal): Promise<string | null> {
  try {
    await client.storedSnapshot(url, { index }, { signal });
    return null;
  } catch (error) {
    if (!TenureError.is(error)) return String(error);
    // A release before there was such a metric.
    return error.code === "NOT_FOUND" || error.code === "METHOD_NOT_ALLOWED" ? null : error.message;
  }
}

async function* downloaded(client: Client, url: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* (await client.downloadSnapshot(url, { signal })) as unknown as AsyncIterable<Uint8Array>;
  } catch (error) {
    if (TenureError.is(error)) throw error;
    const why = (error as Error).message;
    const text = `the snapshot could not be fetched from ${url}: ${why}. Nothing was written; try again.`;
    throw new TenureError("BACKEND_UNAVAILABLE", text, { cause: error });
  }
}

/** The leader has everything; without one, whoever is furthest, for that is when a snapshot is wanted most. */
async function nodeThatSaved(client: Client, signal: AbortSignal): Promise<Saved> {
  const answers = await client.nodes({ signal });
  const unseen = answers.filter(({ code }) => code !== null && UNSEEN.includes(code)).map(({ url }) => url);
  if (unseen.length > 0 && answers.every(({ view }) => view === null)) return await savedUnseen(client, unseen, signal);
  refuseStrangers(answers);
  const { view } = statusOf(answers);
  const found = answers.find((answer) => answer.view === view && view !== null);
  if (found !== undefined) return await save(client, found.url, signal);
  const each = answers.map(({ url, why }) => `${url}: ${why ?? "?"}`);
  throw new TenureError("BACKEND_UNAVAILABLE", `no server answers: ${each.join("; ")}.`);
}

/** The role `backup` may not see who leads: nodes save in turn, until the leader has; without one, whoever is furthest. */
async function savedUnseen(client: Client, urls: readonly string[], signal: AbortSignal): Promise<Saved> {
  const saved: Saved[] = [];
  let failure: unknown;
  for (const node of urls) {
    try {
      const one = await save(client, node, signal);
      if (!one.isFollowers) return one;
      saved.push(one);
    } catch (error) {
      signal.throwIfAborted();
      failure ??= error;
    }
  }
  const [furthest] = saved.toSorted((a, b) => b.index - a.index);
  if (furthest === undefined) throw failure;
  return furthest;
}

interface Saved {
  readonly url: string;
  readonly index: number;
  readonly isFollowers: boolean;
}

async function save(client: Client, node: string, signal: AbortSignal): Promise<Saved> {
  const { url, index, role } = await client.saveSnapshot({ url: node, timeoutMs: SAVE_LIMIT_MS, signal });
  return { url, index, isFollowers: role !== undefined && role !== "LEADER" };
}

async function contentsOf(file: string): Promise<Uint8Array> {
  try {
    const { size } = await stat(file);
    if (size > SNAPSHOT_FILE_BYTES_MAX)
      throw new TenureError(
        "SNAPSHOT_INVALID",
        `${file} has ${size} bytes, and a snapshot at most ${SNAPSHOT_FILE_BYTES_MAX}.`,
      );
    return await readFile(file);
  } catch (error) {
    if (TenureError.is(error)) throw error;
    const why = (error as NodeJS.ErrnoException).code === "ENOENT" ? "there is no such file" : (error as Error).message;
    throw new TenureError("SNAPSHOT_INVALID", `can't read ${file}: ${why}.`, { cause: error });
  }
}

export function snapshotObject({ file, bytes, index, term, configuration, url }: SnapshotFile) {
  const { voters, learners, votersOutgoing } = configuration;
  return { file, bytes, index, term, voters, learners, is_joint: votersOutgoing.length > 0, url };
}

export function snapshotText({ file, bytes, index, term, configuration, url }: SnapshotFile): string {
  const { voters, learners, votersOutgoing } = configuration;
  return columns([
    ["file", file],
    ["checksum", "ok"],
    ["index", String(index)],
    ["term", String(term)],
    ["size", bytesText(bytes)],
    ["voters", voters.join(", ")],
    ...(votersOutgoing.length > 0 ? [["leaving", votersOutgoing.join(", ")]] : []),
    ...(learners.length > 0 ? [["learners", learners.join(", ")]] : []),
    ...(url === null ? [] : [["from", url]]),
  ]);
}
