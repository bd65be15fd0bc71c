// The planted mistakes of chaos runs are planted by text, as those of the simulator: each must still fit the sources, or no process of a
// run would start, and minutes later the run would report nothing of what it was to find.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { checkPlant, writePlant } from "../servers/planted.ts";
import { PLANTS } from "./cluster-plants.ts";
import { JOBS_PLANTS } from "./jobs-plants.ts";
import { MESH_PLANTS } from "./mesh-plants.ts";
import { TC_PLANTS } from "./tc-plants.ts";
import { TXN_PLANTS } from "./txn-plants.ts";
import { COORDINATOR_POINTS, ISLAND_POINTS, POINT_EDITS } from "./txn-points.ts";

const CLUSTER = Object.entries(PLANTS).map(([name, { node }]) => [`cluster: ${name}`, node.edits ?? []] as const);
const JOBS = Object.entries(JOBS_PLANTS).map(
  ([name, { server, agent }]) => [`jobs: ${name}`, [...server, ...agent]] as const,
);
const MESH = Object.entries(MESH_PLANTS).map(([name, edits]) => [`mesh: ${name}`, edits] as const);
const POINTS = POINT_EDITS.map(
  (edit, at) => [`txn: ${[...COORDINATOR_POINTS, ...ISLAND_POINTS][at]}`, [edit]] as const,
);
const TC = Object.entries(TC_PLANTS).map(([name, edits]) => [`tc: ${name}`, edits] as const);
const TXN = Object.entries(TXN_PLANTS).map(
  ([name, { edits }]) => [`txn: ${name}`, [...POINT_EDITS, ...edits]] as const,
);

describe("a planted mistake of a chaos run", () => {
  test.each([...CLUSTER, ...JOBS, ...MESH, ...TC, ...TXN, ...POINTS])("%s fits the sources", (_name, edits) => {
    expect(() => checkPlant(edits)).not.toThrow();
  });

  test("is refused before any process starts, where its line is not in the source", () => {
    const directory = mkdtempSync(join(tmpdir(), "tenure-plant-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const edit = { file: "agent/crew.ts", find: "no such line", replace: "" };
    expect(() => writePlant(join(directory, "plant.mjs"), [edit])).toThrow("agent/crew.ts: the line to change");
  });
});
