// `tenure tc found|discard|recover --force`: offline, on the coordinator's files in the data directory of a server that is stopped (its lock says so).
// What each may break is the operator's to know; what they keep is that no voter ever comes back under its name without what it promised.
//
//   found     a ledger that is in no cluster ──▶ the founder of one
//   recover   the ledger of a member ──▶ the only voter, in a generation of its own; the grant stays, so that the next start still waits for it
//   discard   any ledger ──▶ set aside; the next start is another voter

import { existsSync } from "node:fs";
import { type ServerConfig, tcEndpointOf } from "../../contract/index.ts";
import {
  LEASES_NAME,
  openCoordinatorFiles,
  readLedger,
  setLedgerAside,
  writeLedger,
} from "../../controller/coordinators/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import { founded, type KeptLedger, type Ledger, recovered } from "../../core/lease/index.ts";
import { openDataDirectory } from "../../drivers/disk/index.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import { readStampOf } from "../../engine/stamp-reader.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Disk } from "../../ports/disk.ts";
import { newClusterId, newIncarnation } from "./consensus.ts";
import { coordinatorIdentity } from "./tc-start.ts";

interface Facts {
  readonly text: string;
  readonly data: object;
}

interface Place {
  readonly disk: Disk;
  readonly digest: Digest;
  /** The incarnation of the log in this directory. */
  readonly log: string;
}

interface Self {
  readonly identity: string;
  readonly endpoint: string;
}

export async function foundCoordinators(config: ServerConfig): Promise<Facts> {
  const { identity, endpoint } = selfOf(config);
  return await onDirectory(config, async (place) => {
    const found = await readLedger(place);
    const kept = found?.kind === "whole" ? found.value : null;
    if (kept !== null && kept.ledger.clusterId !== null) {
      throw refused(
        `${kept.voter} is in the cluster of coordinators ${kept.ledger.clusterId} already. Leave it as it is; \`tenure tc discard\` gives that cluster up first`,
      );
    }
    // A name that has promised something in this very directory is kept; a damaged ledger, or another disk's, is set aside.
    const options = { ...place, node: identity, newIncarnation };
    const { self: voter, ledgerFile } = await openCoordinatorFiles(options);
    const ledger = founded(newClusterId(), { peer: voter, endpoint });
    await ledgerFile.write(ledger);
    const text = `${voter} has founded the cluster of coordinators ${ledger.clusterId}, and is its only voter.
Next: start it. Nodes that are in no cluster are admitted when they reach it; one that is in another cluster refuses it (tc_cluster_mismatch).
`;
    return { text, data: { tc_cluster_id: ledger.clusterId, voter, endpoint } };
  });
}

export async function recoverCoordinators(config: ServerConfig): Promise<Facts> {
  const self = selfOf(config);
  return await onDirectory(config, async (place) => {
    const kept = await usableLedger(place, self);
    const { voter, ledger: before } = kept;
    if (before.clusterId === null || before.roster === null) {
      throw refused(`${voter} was never in a cluster of coordinators. \`tenure tc found\` founds one`);
    }
    const ledger = recovered(before, { peer: voter, endpoint: self.endpoint });
    await writeLedger(place, { ...kept, ledger });
    const { term, version, voters, registry } = before.roster;
    const others = voters.filter(({ peer }) => peer !== voter);
    const text = `${voter} is now the only voter of the cluster of coordinators ${before.clusterId}, from term ${ledger.term} on.
Before, as far as it knew (roster of term ${term}, version ${version}), these voted too: ${listed(others)}.
Kept: the registry of ${registry.length} entries. What was registered or removed since, and this node has not received, is lost.
Next: start it. The others stop leading when they hear of it, and are admitted again by themselves. Where a majority of them still runs and can't
hear of it there are two clusters now: stop those nodes, and start each again when it reaches this one.
`;
    const data = {
      tc_cluster_id: before.clusterId,
      term: ledger.term,
      voter,
      voters_before: voters.map(({ peer }) => peer),
    };
    return { text, data };
  });
}

export async function discardCoordinator(config: ServerConfig): Promise<Facts> {
  return await onDirectory(config, async (place) => {
    const found = await readLedger(place);
    if (found === null) throw refused("no coordinator has kept anything here");
    await setLedgerAside(place);
    // Who announced itself is asked at the next start: those of the old cluster would admit this node there once more.
    if ((await place.disk.list("tc-list")).includes(LEASES_NAME)) {
      await place.disk.remove(LEASES_NAME, "tc-leases-remove");
      await place.disk.syncDirectory("tc-leases-sync-directory");
    }
    const kept = found.kind === "whole" ? found.value : null;
    return discardedFacts(kept?.voter ?? null, kept?.ledger ?? null);
  });
}

function discardedFacts(voter: PeerKey | null, ledger: Ledger | null): Facts {
  const others = ledger?.roster?.voters.filter(({ peer }) => peer !== voter) ?? [];
  const was =
    voter === null ? "A damaged ledger" : `${voter}, of the cluster of coordinators ${ledger?.clusterId ?? "(none)"},`;
  const left =
    others.length === 0
      ? "Nobody else voted there: that cluster is gone, and what was registered in it alone is lost."
      : `These voted there too: ${listed(others)}. They go on only with a majority of all ${others.length + 1}, and remove this voter when it comes back as another one.`;
  const text = `${was} is given up; the file is kept beside it as tc-ledger-aside-….
${left}
Next: start it. It joins the cluster that a node of tc.join is in, or founds one where none of them has one.
`;
  const voters = ledger?.roster?.voters.map(({ peer }) => peer) ?? [];
  return { text, data: { tc_cluster_id: ledger?.clusterId ?? null, voter, voters_before: voters } };
}

function listed(voters: readonly { readonly peer: PeerKey; readonly endpoint: string }[]): string {
  return voters.map(({ peer, endpoint }) => `${peer} (${endpoint})`).join(", ") || "none";
}

/** Of this node, on this disk: the next start would set any other one aside. */
async function usableLedger(place: Place, { identity }: Self): Promise<KeptLedger> {
  const found = await readLedger(place);
  if (found === null) throw refused("no coordinator has kept anything here. `tenure tc found` founds a cluster");
  if (found.kind === "damaged") {
    const text = `The coordinator's ledger in this data directory is damaged (${found.why}): what this node has promised is not known, and it can't be the one that is recovered. Recover another node of the cluster; this one comes back as a new voter.`;
    throw new TenureError("DISK_DAMAGED", text);
  }
  const { voter, log } = found.value;
  if (nodeIdOf(voter) !== identity) {
    throw refused(`its ledger is of the node ${nodeIdOf(voter)}, and the API's certificate is of ${identity}`);
  }
  if (log !== place.log) {
    throw refused(
      `its ledger is of another disk (${log}) than the log (${place.log}): the directory was put together of two`,
    );
  }
  return found.value;
}

function selfOf(config: ServerConfig): Self {
  const endpoint = tcEndpointOf(config.api);
  if (endpoint !== null) return { endpoint, identity: coordinatorIdentity(config, endpoint) };
  throw new TenureError(
    "CONFIG_INVALID",
    "api.advertise is missing: other coordinators must know where to reach this node. Name the URL of its API.",
  );
}

async function onDirectory(config: ServerConfig, work: (place: Place) => Promise<Facts>): Promise<Facts> {
  // Opening makes one where there is none.
  if (!existsSync(config.dataDir)) throw refused(`there is no ${config.dataDir}`);
  const directory = await openDataDirectory(config.dataDir, config.disk);
  try {
    const { disk } = directory;
    const stamp = await readStampOf(disk, systemDigest);
    if (stamp === null) throw refused("it is empty: start this node first");
    return await work({ disk, digest: systemDigest, log: stamp.incarnation });
  } finally {
    await directory.close();
  }
}

function refused(why: string): TenureError {
  return new TenureError("CONFIG_INVALID", `Nothing was done to this data directory: ${why}.`);
}
