// This site's links to others, over ports: the lines of other sites that it has, and the service that exchanges pages with them.

import type { JournalService } from "../../controller/journal/service.ts";
import { ForeignLines } from "../../controller/mesh/receipts/foreign-lines.ts";
import { type MeshLinkSettings, MeshService } from "../../controller/mesh/mesh.ts";
import type { ReceiptsService } from "../../controller/mesh/receipts/receipts.ts";
import { controllerOf } from "../../core/mesh/proof/index.ts";
import type { Controllers } from "../../ports/mesh/controllers.ts";
import type { Sites } from "../../ports/mesh/sites.ts";
import type { OwnMesh } from "./mesh.ts";
import type { NodeLog, ServicesWorld } from "./assemble.ts";

/** What a site that is distributed takes of the world, and of its configuration. */
export interface LinksWorld extends Pick<MeshLinkSettings, "accept" | "parents" | "heartbeatMs"> {
  readonly sites: Sites;
}

/** Undefined: pages of other sites are not kept here. */
export function foreignLines(world: ServicesWorld, { receipts, journal }: NodeLog): ForeignLines | undefined {
  if (receipts === null) return undefined;
  const { clock, digest, meshState } = world;
  const { registry } = journal.fold.controllers;
  const isHere = (line: string): boolean => receipts.fold.state.line(line) !== undefined;
  const lineBefore = (line: string): string | null => registry.lineBefore(controllerOf(line), line, isHere);
  // Views that do not answer are no reason to refuse a page: it is found by reading, then.
  const receiptOf = (line: string, sequence: number): Promise<number | null> =>
    meshState === undefined ? Promise.resolve(null) : meshState.views.receiptOf(line, sequence).catch(() => null);
  return new ForeignLines({ receipts: receipts.fold, archive: receipts.archive, digest, clock, receiptOf, lineBefore });
}

export interface LinkedParts {
  readonly journal: JournalService;
  readonly controllers: Controllers;
  readonly receipts: ReceiptsService | null;
  readonly mesh: OwnMesh | undefined;
  readonly foreign: ForeignLines | undefined;
}

/** Undefined: the site is standalone. */
export function assembleLinks(world: ServicesWorld, log: NodeLog, parts: LinkedParts): MeshService | undefined {
  const { clock, digest, random, logger, links, site } = world;
  const { journal, controllers, receipts, mesh, foreign } = parts;
  const own = log.line?.mesh ?? null;
  const kept = log.receipts;
  if (
    links === undefined ||
    own === null ||
    receipts === null ||
    kept === null ||
    mesh === undefined ||
    foreign === undefined
  )
    return undefined;
  const { fold } = kept;
  return new MeshService({
    clock,
    digest,
    verify: own.verify,
    random: random.fork("mesh"),
    logger,
    journal,
    fold: log.journal.fold,
    lines: mesh.lines,
    gate: mesh.gate,
    controllers,
    receipts: {
      stateOf: (line) => fold.state.line(line) ?? null,
      pointOf: (line, size) => foreign.pointOf(line, size),
      all: () => foreign.receipts(),
      receive: async (page) => (await receipts.receive([page]))[0]!,
      onGrown: (listener) => fold.follow(({ receipt }) => listener(receipt.page.line)),
    },
    sites: links.sites,
    settings: { ...links, url: site.url, version: site.version },
  });
}
