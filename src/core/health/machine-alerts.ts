// Alerts about a node's machine that rest on what is seen of it now, and on nothing before: its clock, copies of disks, who does
// not accept it, what it lacks of the history, and why it does not sign for its site.

import { nodeIdOf, type PeerKey } from "../kit/ids.ts";
import { RANGES_SHOWN_MAX } from "../kit/limits.ts";
import type { AlertBoard } from "./alert-board.ts";
import { CERTIFICATE_ENDS_WITHIN_MS, SIGNING_HELD_AFTER_MS } from "./limits.ts";
import type { CertificateEnd, HealthOutput, Moment, Observation } from "./outputs.ts";

export function judgeClones(board: AlertBoard, at: Moment, cloned: readonly string[]): HealthOutput[] {
  const raised = cloned.flatMap((nodeId) => {
    const message = `two processes speak for one disk of ${nodeId}: its data directory was copied, and both may vote in one term. Stop the copy for good and empty its data directory`;
    return board.raise(at, "disk_cloned", message, nodeId);
  });
  const isCloned = (nodeId: string | null): boolean => nodeId !== null && cloned.includes(nodeId);
  return [...raised, ...board.clearUnless(at, "disk_cloned", isCloned)];
}

export function judgeRefused(
  board: AlertBoard,
  at: Moment,
  refused: NonNullable<Observation["refused"]>,
): HealthOutput[] {
  const raised = refused.flatMap(({ nodeId, why }) => {
    const message = `${nodeId} answers, and this node and ${nodeId} do not accept each other: ${why}. Certificates, authorities (ca_file) or the secret differ: docs/runbooks/cluster-certificates.md`;
    return board.raise(at, "peer_unauthenticated", message, nodeId);
  });
  const isRefused = (about: string | null): boolean => refused.some(({ nodeId }) => nodeId === about);
  return [...raised, ...board.clearUnless(at, "peer_unauthenticated", isRefused)];
}

const HOUR_MS = 3_600_000;
const USES = { peer: "other nodes (peer.tls.cert_file)", api: "clients and other coordinators (api.tls.cert_file)" };

/** Of certificates that end soon, or have ended; null: none does. */
export function certificatesProblem(certificates: readonly CertificateEnd[], wallMs: number): string | null {
  const ends = certificates.filter(({ notAfterMs }) => notAfterMs - wallMs < CERTIFICATE_ENDS_WITHIN_MS);
  if (ends.length === 0) return null;
  const each = ends.map(({ use, notAfterMs }) => {
    const hours = Math.floor((notAfterMs - wallMs) / HOUR_MS);
    const when =
      hours < 0 ? "has expired" : hours < 48 ? `ends in ${hours} h` : `ends in ${Math.floor(hours / 24)} days`;
    return `this node's certificate for ${USES[use]} ${when}`;
  });
  return `${each.join(", and ")}: whatever connects after that is refused. Issue another with \`tenure cert issue\`, put it in place and send SIGHUP: docs/runbooks/cluster-certificates.md`;
}

export function judgeCertificates(
  board: AlertBoard,
  at: Moment,
  self: PeerKey,
  certificates: readonly CertificateEnd[],
): HealthOutput[] {
  const problem = certificatesProblem(certificates, at.wallMs);
  return board.set(at, "certificate_ends", nodeIdOf(self), problem !== null, () => problem!);
}

export function judgeClock(
  board: AlertBoard,
  at: Moment,
  self: PeerKey,
  { state, skewMs }: Observation["clock"],
): HealthOutput[] {
  return [
    ...board.set(at, "clock_skewed", nodeIdOf(self), state === "skewed" || state === "jumped", () => {
      if (state === "jumped") {
        return "this node's clock has jumped while it ran, and there is no other to hold it against: it is believed again when it has gone on evenly for five minutes. See that it is right";
      }
      const seconds = Math.round(Math.abs(skewMs ?? 0) / 1_000);
      const way = (skewMs ?? 0) > 0 ? "ahead of" : "slower than";
      return `this node's clock is ${seconds} s ${way} that of the majority: it is not believed, and this node hands leadership to another. Set it right (NTP); it goes on by itself`;
    }),
    ...board.set(at, "clocks_disagree", null, state === "disagreeing", () => {
      return "no majority of the voters' clocks agrees within a minute: none is believed, dates and schedules go by what has passed since one did. Set them right (NTP)";
    }),
  ];
}

const NOTHING_LACKS = { missing: [], lost: [], awaited: [] } as const;

/** Of own events and of receipts of other sites' events: one alert says both. */
export function judgeHistory(
  board: AlertBoard,
  at: Moment,
  self: PeerKey,
  { history, receipts }: Pick<Observation, "history" | "receipts">,
): HealthOutput[] {
  const nodeId = nodeIdOf(self);
  const lacked = [
    { what: "events", ...(history ?? NOTHING_LACKS) },
    { what: "receipts of other sites' events", ...(receipts ?? NOTHING_LACKS) },
  ];
  const late = lacked.filter(({ awaited }) => awaited.length > 0);
  const gone = lacked.filter(({ lost }) => lost.length > 0);
  return [
    ...board.set(at, "history_incomplete", nodeId, late.length > 0, () => {
      const waits = late.map(({ what, missing, lost }) => {
        const isLost = (first: number): boolean => lost.some((range) => range.first <= first && first <= range.last);
        return rangesText(
          what,
          missing.filter(({ first }) => !isLost(first)),
        );
      });
      const awaited = late.flatMap((one) => one.awaited);
      const names = [...new Set(awaited.map((peer) => nodeIdOf(peer as PeerKey)))].join(", ");
      return `${waits.join(" and ")} are missing here, and ${names} may have them and did not send them: they are waited for. See that those nodes run and can be reached`;
    }),
    ...board.set(at, "history_lost", nodeId, gone.length > 0, () => {
      const lost = gone.map(({ what, lost: ranges }) => rangesText(what, ranges)).join(" and ");
      return `${lost} are lost: no member has them. Jobs run on; jobs that changed in them may be missing in lists, and proofs over them are refused. If a disk or a backup has a copy: docs/runbooks/cluster-history.md`;
    }),
  ];
}

function rangesText(what: string, ranges: readonly { readonly first: number; readonly last: number }[]): string {
  const shown = ranges.slice(0, RANGES_SHOWN_MAX).map(({ first, last }) => `${first} to ${last}`);
  const more = ranges.length > shown.length ? ` and ${ranges.length - shown.length} more ranges` : "";
  return `${what} ${shown.join(", ")}${more}`;
}

export function judgeSigning(
  board: AlertBoard,
  at: Moment,
  self: PeerKey,
  held: Observation["signingHeld"] | null,
): HealthOutput[] {
  const isSo = held !== null && held !== undefined && (held.isBehind || held.heldMs >= SIGNING_HELD_AFTER_MS);
  return board.set(at, "mesh_signing_held", nodeIdOf(self), isSo, () => {
    const advice = held?.isBehind
      ? "`tenure mesh resume --new-line` begins the next line"
      : "It goes on by itself once they were linked. `tenure mesh evict SITE` for one that is gone for good; `tenure mesh resume` if this disk is surely no older copy";
    return `${held?.why}. Other sites get nothing of this site's history meanwhile; its own jobs go on. ${advice}: docs/runbooks/mesh-sites.md`;
  });
}
