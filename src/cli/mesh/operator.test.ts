import { expect, it, vi } from "vitest";
import type { Caller } from "../../client/caller.ts";
import { operate } from "./operator.ts";

/** A site, "berlin", that knows "paris" and no fork. */
const caller = {
  readJson: async (path: string) =>
    path.startsWith("/v1/mesh/evidence") ? { forks: [] } : { own: { controller: "berlin" }, sites: [{ id: "paris" }] },
} as unknown as Caller;

it("has no evidence about a site that is known, and says so where a site is not", async () => {
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const ask = (site: string | null) => operate(caller, { verb: "evidence", site }, false, new AbortController().signal);
  try {
    for (const site of [null, "paris", "berlin"]) expect(await ask(site)).toBe(0);
    expect(write).toHaveBeenCalledTimes(3);
    await expect(ask("nosuch")).rejects.toMatchObject({ code: "NOT_FOUND", message: "No site nosuch is known here." });
  } finally {
    write.mockRestore();
  }
});
