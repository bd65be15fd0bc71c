// What `tenure mesh` shows to people.

import type { Paint } from "../kit/colour.ts";
import { columns, duration, isoTime, printable, table } from "../kit/output.ts";
import type { Proven } from "./audit.ts";
import type { MeshSites } from "./command.ts";

export function keyText({ nodeKey, own }: MeshSites): string {
  const rows = [["public key", nodeKey]];
  if (own === null) rows.push(["ring", "none yet (tenure mesh status)"]);
  else rows.push(["ring", own.ringHash], ["line", own.line]);
  return columns(rows.map((row) => row.map(printable)));
}

export function statusText({ nodeKey, status, why, gate, own }: MeshSites): string {
  const rows = [
    ["this node", why === null ? status : `${status}: ${why}`],
    ["public key", nodeKey],
  ];
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
  return columns(rows.map((row) => row.map(printable)));
}

export function sitesTable({ own, status, sites }: MeshSites, paint: Paint): string {
  const first = own === null ? [] : [[own.controller, own.name, own.urls[0] ?? "", `own, ${status}`, own.line]];
  const others = sites.map(({ id, name, url, status: known, line }) => [id, name, url, known, line ?? "-"]);
  const rows = [...first, ...others].map((row) => row.map(printable));
  return table(["ID", "NAME", "URL", "STATUS", "LINE"], rows, paint);
}

export function provenText({ controller, lines, ringHash, isPinned }: Proven, ms: number): string {
  const each = lines.map(({ line, generation, first, through, withheld, ringChanges }) => {
    const events = through < first ? "no events" : `events ${first} to ${through}`;
    return `  ${line} (generation ${generation}): ${events}, ${withheld} of them withheld, ${changes(ringChanges)}\n`;
  });
  const whose = isPinned
    ? `The ring is the one that was given (now ${ringHash}).\n`
    : `The ring was not compared: give --ring ${ringHash} if the site's operator confirms it.\n`;
  return `${printable(controller)}: every event is the one that the site has signed (${duration(ms)})\n${each.join("")}${whose}`;
}

function changes(count: number): string {
  return count === 1 ? "1 change of keys" : `${count} changes of keys`;
}
