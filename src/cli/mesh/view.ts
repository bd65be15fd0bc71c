// What `tenure mesh` shows to people.

import type { Paint } from "../kit/colour.ts";
import { columns, duration, isoTime, printable, table } from "../kit/output.ts";
import type { AuditFailed, Proven } from "./audit.ts";
import type { LinkView } from "../../ports/mesh/links.ts";
import type { MeshSites, ShownSite } from "./command.ts";

export function keyText({ nodeKey, own }: MeshSites): string {
  const rows = [["public key", nodeKey]];
  if (own === null) rows.push(["ring", "none yet (tenure mesh status)"]);
  else rows.push(["ring", own.ringHash], ["line", own.line]);
  return columns(rows.map((row) => row.map(printable)));
}

export function statusText({ nodeKey, status, why, gate, leftAt, own, sites, links }: MeshSites): string {
  const rows = [
    ["this node", why === null ? status : `${status}: ${why}`],
    ["public key", nodeKey],
  ];
  if (leftAt !== null) rows.push(["left", `its mesh, at event ${leftAt}: tenure mesh join takes it back`]);
  if (gate.state === "behind") rows.push(["to go on", "tenure mesh resume --new-line"]);
  if (gate.state === "comparing")
    rows.push(["not compared", `${gate.missing.join(", ")}, since ${isoTime(gate.sinceMs)}`]);
  if (own !== null) {
    rows.push(
      ["site", `${own.controller} (${own.name})`],
      ["line", `${own.line}, generation ${own.generation}`],
      ["events", `${own.size}, kept from ${own.first} on`],
      ["ring", own.ringHash],
      ...own.ring.keys.map(({ node, key }) => [`  ${node}`, key]),
    );
  }
  rows.push(
    ...sites.map((site) => [`of ${site.id}`, siteText(site)]),
    ...links
      .filter(isShown)
      .map((link) => ["link", [linkText(link, gate.state !== "open"), ...refusedText(link)].join(", ")]),
  );
  return columns(rows.map((row) => row.map(printable)));
}

export function sitesTable({ own, status, sites }: MeshSites, paint: Paint): string {
  const first =
    own === null
      ? []
      : [[own.controller, own.name, own.urls[0] ?? "", `own, ${status}`, `${own.size}`, "-", "-", own.line]];
  const others = sites.map((site) => [
    site.id,
    site.name,
    site.url,
    standing(site),
    `${site.size}`,
    site.missingEvents === null || isUnknown(site) ? "?" : `${site.missingEvents}`,
    site.heardMsAgo === null ? "-" : `${duration(site.heardMsAgo)} ago`,
    site.line ?? "-",
  ]);
  const rows = [...first, ...others].map((row) => row.map(printable));
  return table(["ID", "NAME", "URL", "STATUS", "EVENTS", "MISSING", "HEARD", "LINE"], rows, paint);
}

/** A site that is registered may be cut off all the same, until its registration expires. */
function standing({ status, cutOffMs = null, heardMsAgo }: ShownSite): string {
  if (cutOffMs === null) return status;
  // Without a time in the column of the last word from it: how long it has been so at least.
  return heardMsAgo === null ? `${status}, cut off for ${duration(cutOffMs)} or longer` : `${status}, cut off`;
}

/** What a site that is cut off has written since nobody can say, unless another site has it. */
function isUnknown({ missingEvents, cutOffMs = null }: ShownSite): boolean {
  return missingEvents === 0 && cutOffMs !== null;
}

/** What is here of a site, what is known to be elsewhere, and how old that is. */
function siteText(site: ShownSite): string {
  const { size, missingEvents, missingMs, heardMsAgo, lastEventAtMs, cutOffMs = null } = site;
  const missing =
    missingEvents === null
      ? "what is missing is known on the leader"
      : isUnknown(site)
        ? "what is missing is not known"
        : missingEvents === 0
          ? "none known to be missing"
          : `${missingEvents} missing for ${duration(missingMs ?? 0)}`;
  const last = lastEventAtMs === null ? "" : `, the last of ${isoTime(lastEventAtMs)} by its clock`;
  const silent = cutOffMs === null ? "no link to it here" : "not heard since this node leads";
  const heard = heardMsAgo === null ? silent : `heard ${duration(heardMsAgo)} ago`;
  return `${standing(site)}, ${size} events here${last}, ${missing}, ${heard}`;
}

/** A site that dials and has no link now is of interest only for what was refused from it. */
function isShown({ url, connected, blamed }: LinkView): boolean {
  return url !== null || connected || Object.keys(blamed).length > 0;
}

function refusedText({ blamed }: LinkView): string[] {
  const counts = Object.entries(blamed).map(([reason, count]) => `${count} ${reason}`);
  return counts.length === 0 ? [] : [`refused: ${counts.join(", ")}`];
}

/** `isGated`: nothing of the own line is given out. */
function linkText(link: LinkView, isGated: boolean): string {
  const { controller, url, connected, downMs, missingEvents, missingMs, skewMs, roundTripMs, problem } = link;
  if (url === null && !connected) return `${controller ?? "?"}: no link now`;
  const who = `${url === null ? "from" : "to"} ${controller ?? "?"}${url === null ? "" : ` (${url})`}`;
  if (!connected)
    return `${who}: down${downMs === null ? "" : ` for ${duration(downMs)}`}${problem === null ? "" : `: ${problem}`}`;
  const late = [
    sendText(link, isGated),
    missingEvents === 0 ? "" : `${missingEvents} to get, for ${duration(missingMs)}`,
  ].filter((text) => text !== "");
  const measured = [
    roundTripMs === null ? "" : `round trip ${duration(roundTripMs)}`,
    skewMs === null ? "" : `its clock ${skewMs >= 0 ? "+" : ""}${skewMs} ms`,
  ].filter((text) => text !== "");
  return [`${who}: ${late.length === 0 ? "in step" : late.join(", ")}`, ...measured].join(", ");
}

function sendText({ lagEvents, lagMs }: LinkView, isGated: boolean): string {
  if (lagEvents === 0) return "";
  // An age has only what was asked for; and nobody can ask for what is not shown.
  if (lagMs === 0) return isGated ? `${lagEvents} held back until this site signs` : `${lagEvents} to send`;
  return `${lagEvents} to send, for ${duration(lagMs)}`;
}

export function provenText({ controller, lines, ringHash, isPinned }: Proven, ms: number): string {
  const each = lines.map(({ line, generation, first, through, withheld, ringChanges }, at) => {
    const events = through < first ? "no events" : `events ${first} to ${through}`;
    const next = lines[at + 1];
    const end = next === undefined ? "" : `; it ends there, because the site began generation ${next.generation}`;
    return `  ${line} (generation ${generation}): ${events}, ${withheld} of them withheld, ${changes(ringChanges)}${end}\n`;
  });
  const whose = isPinned
    ? `The ring is the one that was given (now ${ringHash}).\n`
    : `The ring was not compared: give --ring ${ringHash} if the site's operator confirms it.\n`;
  return `${printable(controller)}: every event is the one that the site has signed (${duration(ms)})\n${each.join("")}${whose}`;
}

/** Names of lines, rings and nodes in it are those of a server that is not believed. */
export function failedText({ message }: Pick<AuditFailed, "message">): string {
  return `tenure: the history is not proven. ${printable(message)}\n`;
}

function changes(count: number): string {
  return count === 1 ? "1 change of keys" : `${count} changes of keys`;
}
