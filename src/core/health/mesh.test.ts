import { describe, expect, it } from "vitest";
import { peerKey } from "../kit/ids.ts";
import { AlertBoard } from "./alert-board.ts";
import { MESH_LAGGING_AFTER_MS, MESH_SITES_NAMED_MAX, MESH_UNREACHABLE_AFTER_MS } from "./limits.ts";
import { judgeMesh, type MeshSeen } from "./mesh.ts";

const SELF = peerKey("n1", "a1");
const NOTHING: MeshSeen = { forked: [], down: [], late: [], skews: [], maxSkewMs: 1_000 };

class Desk {
  readonly board = new AlertBoard();
  nowMs = 0;

  /** What is raised and cleared, a second later. */
  sees(seen: Partial<MeshSeen> | null): readonly string[] {
    this.nowMs += 1_000;
    const at = { nowMs: this.nowMs, wallMs: this.nowMs };
    const outputs = judgeMesh(this.board, at, SELF, seen === null ? null : { ...NOTHING, ...seen });
    return outputs.map((one) =>
      one.kind === "alert-raised" || one.kind === "alert-cleared" ? `${one.kind} ${one.alert.name}` : one.kind,
    );
  }

  message(): string {
    return this.board.alerts[0]?.message ?? "";
  }
}

describe("an alert about other sites", () => {
  it("mesh_peer_unreachable: a parent that is down for a minute, until it is back", () => {
    const desk = new Desk();
    expect(desk.sees({ down: [{ site: "berlin", downMs: MESH_UNREACHABLE_AFTER_MS }] })).toEqual([]);
    const down = [{ site: "berlin", downMs: MESH_UNREACHABLE_AFTER_MS + 1_000 }];
    expect(desk.sees({ down })).toEqual(["alert-raised mesh_peer_unreachable"]);
    expect(desk.message()).toContain("berlin for 61 s");
    expect(desk.sees({ down })).toEqual([]);
    expect(desk.sees({})).toEqual(["alert-cleared mesh_peer_unreachable"]);
  });

  it("mesh_peer_unreachable: a site that registers here and is silent for its TTL", () => {
    const desk = new Desk();
    expect(desk.sees({ down: [{ site: "oslo", downMs: null }] })).toEqual(["alert-raised mesh_peer_unreachable"]);
    expect(desk.sees({})).toEqual(["alert-cleared mesh_peer_unreachable"]);
  });

  it("mesh_peer_lagging: by the age of the oldest event that is lacking, not by their number", () => {
    const desk = new Desk();
    expect(desk.sees({ late: [{ site: "oslo", events: 100_000, ms: MESH_LAGGING_AFTER_MS }] })).toEqual([]);
    const late = [{ site: "oslo", events: 1, ms: MESH_LAGGING_AFTER_MS + 1 }];
    expect(desk.sees({ late })).toEqual(["alert-raised mesh_peer_lagging"]);
    expect(desk.message()).toContain("oslo: 1 events, the oldest 60 s old");
    expect(desk.sees({ late: [{ site: "oslo", events: 1, ms: 10 }] })).toEqual(["alert-cleared mesh_peer_lagging"]);
  });

  it("mesh_clock_skew: above mesh.max_skew_ms in either direction, and cleared below half of it", () => {
    const desk = new Desk();
    expect(desk.sees({ skews: [{ site: "oslo", skewMs: 1_000 }] })).toEqual([]);
    expect(desk.sees({ skews: [{ site: "oslo", skewMs: -1_001 }] })).toEqual(["alert-raised mesh_clock_skew"]);
    expect(desk.sees({ skews: [{ site: "oslo", skewMs: 501 }] })).toEqual([]);
    expect(desk.sees({ skews: [{ site: "oslo", skewMs: 500 }] })).toEqual(["alert-cleared mesh_clock_skew"]);
  });

  it("mesh_fork: while the last line of a site has forked", () => {
    const desk = new Desk();
    expect(desk.sees({ forked: ["paris"] })).toEqual(["alert-raised mesh_fork"]);
    expect(desk.board.alerts).toMatchObject([{ severity: "critical", nodeId: "n1" }]);
    expect(desk.sees({})).toEqual(["alert-cleared mesh_fork"]);
  });

  it("ends when the site leaves its mesh, and names a few of many sites", () => {
    const desk = new Desk();
    const forked = Array.from({ length: MESH_SITES_NAMED_MAX + 3 }, (_, at) => `s${at}`);
    desk.sees({ forked });
    expect(desk.message()).toContain(`s${MESH_SITES_NAMED_MAX - 1} and 3 more`);
    expect(desk.sees(null)).toEqual(["alert-cleared mesh_fork"]);
  });
});
