// The database's disk fills up under the controller: the table's, where each append is refused and the database lives, and the
// whole database's, where it can't write its own log and stops itself in the middle of commits. What was acknowledged is there,
// what was refused is not, and the site goes on by itself when there is room.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { schemaSql } from "../../src/postgres/schema/schema.ts";
import { removeDirectory, temporaryDirectory } from "../servers/directories.ts";
import { serverAccount } from "../servers/server-process.ts";
import { SmallDisk } from "../servers/small-disk.ts";
import { type Site, type SiteOptions, startSite, waitFor } from "./test-site.ts";
import { Submissions } from "./test-submissions.ts";

const MIB = 1024 * 1024;

async function siteOn(sizeMib: number, optionsOf: (directory: string) => SiteOptions): Promise<[Site, SmallDisk]> {
  const directory = await temporaryDirectory("small-disk", serverAccount);
  const disk = SmallDisk.mount(directory, sizeMib * MIB, serverAccount)!;
  const sites: Site[] = [];
  onTestFinished(async () => {
    for (const site of sites) await site.end();
    disk.unmount();
    await removeDirectory(directory);
  });
  sites.push(await startSite({ nodes: 2, ...optionsOf(directory) }));
  return [sites[0]!, disk];
}

describe.skipIf(!SmallDisk.isPossible)("a disk that is full", () => {
  test("of the log's table: each job is refused with the reason, none is lost or doubled, and it goes on when there is room", async () => {
    const [site, disk] = await siteOn(4, (directory) => ({
      prepare: async (server) => {
        await server.query(schemaSql("public"));
        await server.query(`create tablespace small location '${directory}'`);
        await server.query("alter table tenure_log set tablespace small");
        await server.query("alter index tenure_log_pkey set tablespace small");
      },
    }));
    const submissions = new Submissions(site);
    submissions.begin(2);
    await submissions.progress(20);
    const leader = await site.leader();
    const filler = join(disk.directory, "filler");
    disk.fill(filler);
    await waitFor("jobs to be refused", () => submissions.count("refused") > 5);
    rmSync(filler);
    await submissions.progress(20);
    await submissions.rest();
    expect(submissions.reasons("refused").filter((why) => !why.includes("No space left on device"))).toEqual([]);
    // A refusal is certain, and costs nobody the lead.
    expect([submissions.count("unknown"), (await site.leader()).id]).toEqual([0, leader.id]);
    expect(await submissions.mistakes()).toEqual([]);
  }, 180_000);

  test("of the whole database, which then stops itself: none is lost or doubled, and it goes on when there is room", async () => {
    const [site, disk] = await siteOn(192, (directory) => ({
      postgres: {
        dataDirectory: join(directory, "data"),
        settings: { wal_keep_size: "0", min_wal_size: "32MB", max_wal_size: "48MB" },
      },
    }));
    const submissions = new Submissions(site);
    submissions.begin(2);
    await submissions.progress(20);
    const filler = join(disk.directory, "filler");
    disk.fill(filler);
    let said = "";
    await waitFor("the database to stop", async () => {
      // A new file of its log is needed sooner.
      await site.server.query("select pg_switch_wal()").catch(() => undefined);
      said += site.server.log;
      return said.includes("PANIC");
    });
    rmSync(filler);
    // It starts itself again, or has given up, depending on when there was room.
    const isBack = async (): Promise<boolean> => {
      await site.server.start().catch(() => undefined);
      return site.server.query("select").then(
        () => true,
        () => false,
      );
    };
    await waitFor("the database to be back", isBack, 120_000).catch((error: unknown) => {
      throw new Error(site.server.log, { cause: error });
    });
    await submissions.progress(20);
    await submissions.rest();
    expect(await submissions.mistakes()).toEqual([]);
    await site.cluster.steady();
  }, 300_000);
});
