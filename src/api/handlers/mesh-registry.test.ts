// What an operator is answered about sites.

import { expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import type { Controllers } from "../../ports/mesh/controllers.ts";
import type { Call, Service } from "./handler.ts";
import { registryHandlers } from "./mesh-registry.ts";

it("a site that is to evict itself is told how a site leaves", async () => {
  const controllers = {
    list: () => [{ id: "berlin", status: "own" }],
    evict: async (_request: unknown, id: string) => {
      throw new TenureError("NOT_FOUND", `There is no site ${id} in the registry.`);
    },
  } as unknown as Controllers;
  const service = { cluster: { currentRole: () => "LEADER" }, nodeId: "n1" } as unknown as Service;
  const { evictSite } = registryHandlers(service, controllers);
  const evict = async (id: string) =>
    evictSite({ caller: { name: "ops" }, params: { id }, body: {} } as unknown as Call<"evictSite">);
  await expect(evict("berlin")).rejects.toMatchObject({
    code: "NOT_FOUND",
    message:
      "berlin is this site itself, which is not in its own registry. A site leaves its mesh with tenure mesh leave.",
  });
  await expect(evict("oslo")).rejects.toMatchObject({ message: "There is no site oslo in the registry." });
});
