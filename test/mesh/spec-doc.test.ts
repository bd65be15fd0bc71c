// docs/reference/mesh-specification.md has a row for each item of the specification of the controller network, and docs/mesh.md and
// docs/reference/mesh-formats.md name tests as well: each linked file exists, each quoted title is in its file, and no item is left out.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";

const SPECIFICATION = "docs/reference/mesh-specification.md";
const PAGES = [SPECIFICATION, "docs/mesh.md", "docs/reference/mesh-formats.md"];
const STATUSES = ["yes", "decision", "missing"];

const LINK = /\[[^\]]+\]\(([^)#]+)(?:#[^)]*)?\)(?: "((?:[^"]|\\")+)")?/g;

/** Names of the specification as it spells them: tables with their columns, types, endpoints, methods, fields, flags. */
const ITEMS = [
  ..."controller_nodes id url name registered_at last_heartbeat_at expires_at is_active metadata".split(" "),
  ..."event_log sequence timestamp event_type entity_id entity_type payload source_controller_id".split(" "),
  ..."previous_hash event_hash event_propagation event_id controller_id propagated_at".split(" "),
  ..."build:submitted build:assigned build:building build:completed build:failed build:cancelled build:retried".split(
    " ",
  ),
  ..."worker:registered worker:offline controller:registered controller:heartbeat controller:expired".split(" "),
  ..."eventType entityId entityType sourceControllerId previousHash eventHash".split(" "),
  ..."mode controllerId controllerName parentControllerUrl registrationTtl heartbeatInterval".split(" "),
  ..."expirationCheckInterval --controller-id --parent-url --mode".split(" "),
  ..."EventLog.append EventLog.getLatest EventLog.verify EventLog.getSince EventLog.replay".split(" "),
  ..."ControllerRegistry.register ControllerRegistry.heartbeat ControllerRegistry.getActive".split(" "),
  ..."ControllerRegistry.expireStale ControllerRegistry.broadcastEvent EventBroadcaster.receive".split(" "),
  ..."EventBroadcaster.hasSeenEvent EventBroadcaster.markPropagated EventBroadcaster.broadcast".split(" "),
  ..."JobQueue.enqueue JobQueue.assignToWorker".split(" "),
  "calculateEventHash(event)",
  "POST /api/controllers/register",
  "POST /api/controllers/:id/heartbeat",
  "GET /api/controllers",
  "POST /api/events/broadcast",
  "GET /api/events/since/:sequence",
  "GET /api/events/verify",
];

/** How many rows each part has in the specification. */
const PARTS = {
  Requirements: 13,
  "Startup flow": 8,
  "Conflict resolution": 3,
  "Phase 1: event log foundation": 4,
  "Phase 2: controller registry": 5,
  "Phase 3: event broadcasting": 5,
  "Phase 4: integration": 5,
  "Phase 5: observability": 5,
  "Security considerations": 5,
  "Testing strategy": 4,
  "Migration path": 3,
  "Open questions": 5,
};

function read(path: string): string {
  return readFileSync(path, "utf8");
}

/** The cells of each row; those of the head and the rule are no rows. */
function rowsOf(text: string): readonly (readonly string[])[] {
  const rows = text.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| specified"));
  return rows.map((row) => row.slice(2, -2).split(" | "));
}

describe.each(PAGES)("%s", (page) => {
  const links = [...read(page).matchAll(LINK)].map(([, path, title]) => ({ path: path!, title }));

  it.each(links.filter(({ path }) => !/^[a-z]+:/.test(path)))("$path $title", ({ path, title }) => {
    const file = join(dirname(page), path);
    expect(existsSync(file), `${file} exists`).toBe(true);
    // In quotes: a title, and not a part of one.
    if (title !== undefined) expect(read(file).includes(`"${title}"`), `${file} has a test "${title}"`).toBe(true);
  });
});

describe("the specification, row by row", () => {
  const text = read(SPECIFICATION);
  const rows = rowsOf(text);

  it.each(rows)("%s: %s", (...[specified, status, where, shown]) => {
    expect(specified).not.toBe("");
    expect(STATUSES).toContain(status);
    // What is missing has nothing that shows it; everything else has a test.
    if (status === "missing") expect(where?.length).toBeGreaterThan(10);
    else expect(shown).toMatch(/\]\([^)]+\) "/);
    if (status === "decision") expect(where?.length).toBeGreaterThan(10);
  });

  it.each(ITEMS)("has %s", (item) => {
    const named = rows.flatMap(([specified]) => [...specified!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!));
    expect(named.some((name) => name === item || name.startsWith(`${item}:`) || name.startsWith(`${item} `))).toBe(
      true,
    );
  });

  it.each(Object.entries(PARTS))("%s has %i rows", (part, count) => {
    const section = text.split("\n## ").find((one) => one.startsWith(`${part}\n`)) ?? "";
    expect(rowsOf(section)).toHaveLength(count);
  });
});
