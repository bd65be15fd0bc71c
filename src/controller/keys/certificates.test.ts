import { describe, expect, it } from "vitest";
import { CERTIFICATES_REVOKED_MAX } from "../../core/kit/limits.ts";
import { CertificatesFold } from "./certificates-fold.ts";
import { CertificatesService } from "./certificates.ts";
import { CommittedAtOnce } from "./test-journal.ts";

const REQUEST = { caller: "ada", idempotencyKey: null, bodyHash: "" };
const DAY_MS = 86_400_000;
const hash = (number: number): string => number.toString(16).padStart(64, "0");

function stage() {
  const fold = new CertificatesFold();
  const journal = new CommittedAtOnce(fold);
  const world = { unready: [] as string[] };
  const service = new CertificatesService({ fold, journal, unready: () => world.unready });
  const revoke = (number: number, notAfterMs = 10 * DAY_MS) =>
    service.revoke(REQUEST, { sha256: hash(number), id: `spiffe://tenure/operator/o${number}`, notAfterMs });
  return { fold, service, journal, events: journal.events, world, revoke };
}

describe("revoked certificates", () => {
  it("are revoked once, in the leader epoch that the request names, and whoever listens hears of it", async () => {
    const { service, events, revoke } = stage();
    let heard = 0;
    service.onRevoked(() => heard++);
    const named = { sha256: hash(1), id: "spiffe://tenure/operator/o1", notAfterMs: DAY_MS };
    await expect(service.revoke({ ...REQUEST, leaderEpoch: 2 }, named)).rejects.toMatchObject({ code: "STALE_EPOCH" });
    expect(await revoke(1, DAY_MS)).toEqual({ ...named, revokedAtMs: 1_000, revokedBy: "ada" });
    expect(await revoke(1, DAY_MS)).toMatchObject({ revokedAtMs: 1_000 });
    expect([service.isRevoked(hash(1)), service.isRevoked(hash(2)), heard, events.length]).toEqual([true, false, 1, 1]);
  });

  it("are bounded: one more is refused, until those that have expired are dropped", async () => {
    const { service, journal, events, revoke } = stage();
    for (let at = 0; at < CERTIFICATES_REVOKED_MAX; at++) await revoke(at, at === 0 ? 2 * DAY_MS : 10 * DAY_MS);
    await expect(revoke(CERTIFICATES_REVOKED_MAX)).rejects.toMatchObject({ code: "OVERLOADED" });
    // It has expired, and a node with a slow clock might not know that yet.
    journal.nowMs = 2.5 * DAY_MS;
    await expect(revoke(CERTIFICATES_REVOKED_MAX)).rejects.toMatchObject({ code: "OVERLOADED" });
    expect(service.isRevoked(hash(0))).toBe(true);
    journal.nowMs = 3 * DAY_MS + 1;
    await revoke(CERTIFICATES_REVOKED_MAX);
    expect([service.isRevoked(hash(0)), service.isRevoked(hash(CERTIFICATES_REVOKED_MAX))]).toEqual([false, true]);
    expect(service.revoked()).toHaveLength(CERTIFICATES_REVOKED_MAX);
    expect(events).toHaveLength(CERTIFICATES_REVOKED_MAX + 1);
  });

  it("that have expired need no revocation", async () => {
    const { events, revoke } = stage();
    await expect(revoke(1, 1_000)).rejects.toMatchObject({ code: "BAD_REQUEST" });
    expect(events).toEqual([]);
  });

  it("are written only where every node is known to read them; where there is one, all have", async () => {
    const { service, events, world, revoke } = stage();
    world.unready = ["n3"];
    await expect(revoke(1)).rejects.toMatchObject({ code: "NOT_SUPPORTED", message: expect.stringContaining("n3") });
    expect([events.length, service.revoked().length]).toEqual([0, 0]);
    world.unready = [];
    await revoke(1);
    world.unready = ["n3"];
    await revoke(2);
    expect(service.revoked()).toHaveLength(2);
  });

  it("come back from a snapshot, and nothing is written of none", async () => {
    const { fold, revoke } = stage();
    expect(fold.snapshot()).toBeNull();
    await revoke(2);
    await revoke(1);
    const other = new CertificatesFold();
    let heard = 0;
    other.onAdded(() => heard++);
    other.restore(fold.snapshot());
    expect(other.all()).toEqual(fold.all());
    expect(heard).toBe(1);
    other.restore(null);
    expect(other.all()).toEqual([]);
  });
});
