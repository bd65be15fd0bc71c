// Sites that exchange their lines, as real servers: what is written at one is known at all, byte for byte, whoever is killed or cut off
// meanwhile. The steps of one world build on each other.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startProxy, type TcpProxy } from "../servers/index.ts";
import { haveTheSame, SITES_START_MS, SPREAD_MS, TestSite } from "./test-sites.ts";

describe("a hub and two children", () => {
  let hub: TestSite;
  let left: TestSite;
  let right: TestSite;
  let proxy: TcpProxy;
  const sites = (): readonly TestSite[] => [hub, left, right];

  beforeAll(async () => {
    hub = await TestSite.start({ id: "hub", children: ["left", "right"] });
    const { hostname, port } = new URL(hub.url);
    proxy = await startProxy({ host: hostname, port: Number(port) });
    left = await TestSite.start({ id: "left", parents: [hub.url] });
    right = await TestSite.start({ id: "right", parents: [`http://127.0.0.1:${proxy.port}`] });
  }, SITES_START_MS);

  afterAll(async () => {
    await Promise.all(sites().map((site) => site?.end()));
    await proxy?.end();
  }, 60_000);

  it(
    "jobs that are submitted at each are known at all, in the same bytes",
    async () => {
      await Promise.all(sites().map((site) => site.submit(20)));
      await haveTheSame(sites());
      for (const author of sites()) {
        const line = await author.ownLine();
        const own = await author.items(line);
        expect(own.filter((item) => item.includes(`"from":"${author.id}"`))).toHaveLength(20);
        for (const site of sites()) expect(await site.items(line), `${line} at ${site.id}`).toEqual(own);
      }
    },
    SPREAD_MS,
  );
});
