// A coordinator's files, in the data directory of its node:
//
//   tc-ledger              which voter this disk is, and its ledger; replaced as a whole, and synced (core/lease/records.ts)
//   tc-leases              the membership leases, as of a few seconds ago; never synced, and worth nothing but time
//   tc-ledger-aside-1      a ledger that was set aside: damaged, or of another disk; evidence, never read
//   tmp-tc-…               a file that is not finished; worthless after a restart
//
// Which voter a directory is (decision 67). The name is in the ledger itself, drawn with it, and never drawn again: whoever finds no ledger that can
// be used is another voter, which has promised nothing. So no crash and no loss leaves an old name without what was promised under it.
//
//   no ledger                                     ──▶ another voter
//   damaged                                       ──▶ set aside, another voter
//   whole, of another node or next to another log  ──▶ set aside, another voter
//   whole, of a later release                     ──▶ FORMAT_UNSUPPORTED, and nothing is changed
//   whole                                         ──▶ this voter

import { TenureError } from "../../core/kit/errors.ts";
import { nodeIdOf, type PeerKey, peerKey } from "../../core/kit/ids.ts";
import {
  decodeLeases,
  decodeLedger,
  EMPTY_LEDGER,
  encodeLeases,
  encodeLedger,
  type KeptLedger,
  type Ledger,
  type MembershipLease,
} from "../../core/lease/index.ts";
import { durableFiles } from "../../loops/durable-file.ts";
import type { LedgerFile, MembershipFile } from "../../ports/coordinators.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Disk } from "../../ports/disk.ts";

export const LEDGER_NAME = "tc-ledger";
export const LEASES_NAME = "tc-leases";
const ASIDE = /^tc-ledger-aside-([0-9]+)$/;

const { syncDirectory, writeDurably } = durableFiles(
  "the data directory",
  (what, why) => `${what} could not be synced: ${why}. What this coordinator has promised may be lost.`,
);

interface CoordinatorDirectory {
  readonly disk: Disk;
  readonly digest: Digest;
}

export interface CoordinatorFilesOptions extends CoordinatorDirectory {
  /** The node id of this server's certificate. */
  readonly node: string;
  /** The incarnation of the log in this directory: where that is another one, the directory was replaced, or is a copy. */
  readonly log: string;
  /** One to sixteen hexadecimal digits, random: it must never come twice (trap 13). */
  readonly newIncarnation: () => string;
}

export interface CoordinatorFiles {
  readonly self: PeerKey;
  readonly ledger: Ledger;
  readonly ledgerFile: LedgerFile;
  /** Also those that have ended: they say whom to ask. */
  readonly leases: readonly MembershipLease[];
  readonly membershipFile: MembershipFile;
  /** Why the ledger that was here is not used; null: it is, or there was none. */
  readonly setAside: string | null;
}

/** Throws FORMAT_UNSUPPORTED, and then has changed nothing. */
export async function openCoordinatorFiles(options: CoordinatorFilesOptions): Promise<CoordinatorFiles> {
  const { disk, digest, log } = options;
  const found = await readLedger(options);
  const why = found === null ? null : whyAnother(found, options);
  const isKept = found?.kind === "whole" && why === null;
  const kept = isKept ? found.value : await beginAnother(options, found !== null);
  const { voter, ledger } = kept;
  return {
    self: voter,
    ledger,
    ledgerFile: { write: (next) => writeLedger(options, { voter, log, ledger: next }) },
    leases: await readLeases(options),
    membershipFile: { write: (leases) => writeLeases(disk, encodeLeases(leases, digest)) },
    setAside: why,
  };
}

type FoundLedger = Exclude<ReturnType<typeof decodeLedger>, { kind: "newer" }>;

/** Null: there is none. Throws FORMAT_UNSUPPORTED. */
export async function readLedger({ disk, digest }: CoordinatorDirectory): Promise<FoundLedger | null> {
  if (!(await disk.list("tc-list")).includes(LEDGER_NAME)) return null;
  // After a kill -9 the kernel still shows a name that a power loss would take away. Its bytes were synced before.
  await syncDirectory(disk, "tc-ledger-sync-directory");
  const read = decodeLedger(await disk.read(LEDGER_NAME, "tc-ledger-read"), digest);
  if (read.kind === "newer") throw unsupported(read.format);
  return read;
}

/** It survives any crash once this resolves. */
export async function writeLedger({ disk, digest }: CoordinatorDirectory, kept: KeptLedger): Promise<void> {
  await writeDurably(disk, LEDGER_NAME, [encodeLedger(kept, digest)], "tc-ledger");
}

/** What is here is given up: the next start is another voter. */
export async function setLedgerAside({ disk }: Pick<CoordinatorDirectory, "disk">): Promise<void> {
  const numbers = (await disk.list("tc-list")).map((name) => Number(ASIDE.exec(name)?.[1] ?? 0));
  await disk.rename(LEDGER_NAME, `tc-ledger-aside-${Math.max(0, ...numbers) + 1}`, "tc-ledger-aside");
  await syncDirectory(disk, "tc-ledger-sync-directory");
}

/** Null: this is its voter. */
function whyAnother(found: FoundLedger, { node, log }: CoordinatorFilesOptions): string | null {
  if (found.kind === "damaged") return `it is damaged (${found.why})`;
  const { voter, log: itsLog } = found.value;
  if (nodeIdOf(voter) !== node) return `it is of the node ${nodeIdOf(voter)}, and this certificate is of ${node}`;
  return itsLog === log ? null : `it is of the disk ${itsLog}, and the log in this directory is of the disk ${log}`;
}

/** A crash in between leaves no ledger, or the new one with nothing promised: both are another voter. */
async function beginAnother(options: CoordinatorFilesOptions, isAside: boolean): Promise<KeptLedger> {
  const { node, log, newIncarnation } = options;
  if (isAside) await setLedgerAside(options);
  const kept = { voter: peerKey(node, newIncarnation()), log, ledger: EMPTY_LEDGER };
  await writeLedger(options, kept);
  return kept;
}

/** Damaged, missing or a later release's: empty. They are for discovery, and others announce themselves again within seconds. */
async function readLeases({ disk, digest }: CoordinatorDirectory): Promise<readonly MembershipLease[]> {
  if (!(await disk.list("tc-list")).includes(LEASES_NAME)) return [];
  const read = decodeLeases(await disk.read(LEASES_NAME, "tc-leases-read"), digest);
  return read.kind === "whole" ? read.value : [];
}

/** As a whole or not at all while the process dies; after a power loss it may be torn, which its checksum finds. */
async function writeLeases(disk: Disk, bytes: Uint8Array): Promise<void> {
  const temporary = `tmp-${LEASES_NAME}`;
  const file = await disk.create(temporary, "tc-leases-create");
  await file.append(bytes, "tc-leases-append");
  await file.close();
  await disk.rename(temporary, LEASES_NAME, "tc-leases-rename");
}

function unsupported(format: number): TenureError {
  return new TenureError(
    "FORMAT_UNSUPPORTED",
    `The file ${LEDGER_NAME} in the data directory has format ${format}, from a later release: what this coordinator has promised can't be read. ` +
      "Start the release that wrote it, or a later one, here.",
  );
}
