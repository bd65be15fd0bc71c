// A coordinator's files on a simulated disk: which disk this is, and the ledger with its checksum. A file that is damaged sets the whole
// directory aside, as a server does: the node is then another voter.

import { EMPTY_LEDGER, type Ledger } from "../../core/lease/index.ts";
import { durableFiles } from "../../loops/durable-file.ts";
import type { Disk } from "../../ports/disk.ts";

export const LEDGER_FILE = "ledger";
const IDENTITY_FILE = "identity";

const { writeDurably } = durableFiles("the coordinator's directory", (what, why) => `${what}: ${why}.`);

/** It names the voter whose it is: a ledger of another incarnation is none. */
interface LedgerOnDisk {
  readonly incarnation: string;
  readonly ledger: Ledger;
}

export interface Kept {
  readonly incarnation: string;
  readonly ledger: Ledger;
  readonly isDamaged: boolean;
}

export async function openPlatter(disk: Disk, newIncarnation: string): Promise<Kept> {
  const names = await disk.list("list");
  const read = async (name: string): Promise<unknown> =>
    names.includes(name) ? decoded(await disk.read(name, `read-${name}`)) : null;
  const identity = await read(IDENTITY_FILE);
  const file = (await read(LEDGER_FILE)) as LedgerOnDisk | null | undefined;
  const isDamaged = identity === undefined || file === undefined;
  if (typeof identity === "string" && !isDamaged && (file === null || file.incarnation === identity))
    return { incarnation: identity, ledger: file?.ledger ?? EMPTY_LEDGER, isDamaged };
  // The new identity first: a crash in between must not leave the old one without what it promised.
  await writeDurably(disk, IDENTITY_FILE, [encoded(newIncarnation)], "identity");
  return { incarnation: newIncarnation, ledger: EMPTY_LEDGER, isDamaged };
}

export async function writeLedger(disk: Disk, incarnation: string, ledger: Ledger): Promise<void> {
  await writeDurably(disk, LEDGER_FILE, [ledgerBytes(incarnation, ledger)], "ledger");
}

export function ledgerBytes(incarnation: string, ledger: Ledger): Uint8Array {
  return encoded({ incarnation, ledger } satisfies LedgerOnDisk);
}

/** Undefined: damaged. */
export function ledgerOf(bytes: Uint8Array): Ledger | undefined {
  return (decoded(bytes) as LedgerOnDisk | undefined)?.ledger;
}

function encoded(value: unknown): Uint8Array {
  const text = JSON.stringify(value);
  return new TextEncoder().encode(`${checksumOf(text)} ${text}`);
}

/** Undefined: damaged. */
function decoded(bytes: Uint8Array): unknown {
  const [sum, ...rest] = new TextDecoder().decode(bytes).split(" ");
  const text = rest.join(" ");
  return sum === String(checksumOf(text)) ? (JSON.parse(text) as unknown) : undefined;
}

/** FNV-1a: enough for one wrong bit, and for a sector of zeros. */
function checksumOf(text: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  return sum >>> 0;
}
