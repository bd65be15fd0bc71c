// What each site shows in the end: all arrivals, as production's reader has them, and the merged state that follows from them. Each node of a
// site has the same arrivals; sites whose sets of events are equal have the same merged state, in whatever order they came.
//
// The merged state is that of the pure projection (core/mesh/merge), over rows in memory: mesh.sqlite, which feeds it in production, and its
// feeder are not simulated. A site that was restored has no more what it had lost: its old line is left out where it is compared.

import { arrivals } from "../../controller/mesh/receipts/arrivals.ts";
import { decodeEvent } from "../../core/events/index.ts";
import type { LineId } from "../../core/mesh/model.ts";
import {
  EMPTY_SUM,
  Projection,
  projectionHash,
  type Row,
  type RowKind,
  type RowStore,
} from "../../core/mesh/merge/index.ts";
import { isFrozen } from "./end.ts";
import type { SimSite, SiteServer } from "./site.ts";
import type { MeshStage } from "./stage.ts";
import { siteOfLine } from "./wire-oracle.ts";

const READ_WITHIN_MS = 30_000;

/** Null: every honest node shows what it must. */
export async function shownProblem(stage: MeshStage): Promise<string | null> {
  const { world } = stage;
  const sums = new Map<string, Sums>();
  for (const site of stage.honest) {
    for (const name of site.names) {
      const server = site.server(name);
      if (server === undefined) return `${name} does not run`;
      let end: string | Shown | undefined;
      world.call(name, () => {
        // Of nodes with the same arrivals the state is the same.
        shownBy(stage, site, server, !sums.has(site.id)).then(
          (shown) => (end = shown),
          (error: unknown) => (end = `${name} can't read its arrivals: ${String(error)}`),
        );
      });
      await world.run(() => end !== undefined || world.findings.length > 0, { untilMs: world.nowMs + READ_WITHIN_MS });
      if (world.findings.length > 0) return null;
      if (end === undefined) return `${name} does not come to the end of its arrivals`;
      if (typeof end === "string") return end;
      const problem = arrivalsProblem(end.arrivals, stage.ledger.arrivals(site.id));
      if (problem !== null) return `${name} ${problem}`;
      if (end.sums !== null) sums.set(site.id, end.sums);
    }
  }
  return sumsProblem(stage, sums);
}

/** Null: sites with the same events have the same state. */
function sumsProblem(stage: MeshStage, sums: ReadonlyMap<string, Sums>): string | null {
  const { ledger, sites } = stage;
  // Who has evicted a site has other events than those who have not.
  const equal = [...sums].filter(([site]) => !sites.some(({ id }) => ledger.hasEvicted(site, id)));
  const isRestored = (site: string): boolean => ledger.endOf(site) !== null;
  const cut = sites.flatMap(({ id }) => (isRestored(id) ? stage.linesOf(id).slice(0, 1) : []));
  return (
    differentProblem(equal, (line) => !cut.includes(line)) ??
    differentProblem(
      equal.filter(
        ([site]) => !isRestored(site) && cut.every((line) => stage.sizeAt(site, line) === stage.toldBy(line).size),
      ),
      () => true,
    )
  );
}

function differentProblem(shown: readonly [string, Sums][], counts: (line: LineId) => boolean): string | null {
  const hashes = shown.map(([site, sums]) => {
    const counted = [...sums].filter(([line]) => counts(line)).map(([, sum]) => sum);
    return { site, hash: projectionHash([EMPTY_SUM, ...counted]) };
  });
  const other = hashes.find(({ hash }) => hash !== hashes[0]?.hash);
  return other === undefined
    ? null
    : `${hashes[0]!.site} and ${other.site} have the same events, and show other states`;
}

/** Of each line that is not frozen. */
type Sums = ReadonlyMap<LineId, string>;

interface Shown {
  readonly arrivals: readonly string[];
  /** Null: not asked for. */
  readonly sums: Sums | null;
}

async function shownBy(stage: MeshStage, site: SimSite, server: SiteServer, isSummed: boolean): Promise<Shown> {
  const store = new MemoryRows();
  const projection = new Projection(store, stage.digest);
  const generations = new Map(stage.sites.flatMap(({ id }) => stage.linesOf(id).map((line, at) => [line, at + 1])));
  const own = server.fold.ownLine.lines?.generations ?? [];
  const names: string[] = [];
  for await (const batch of arrivals({ own: server.archive, receipts: server.receipts }, 1)) {
    for (const arrived of batch) {
      const { lineSequence } = arrived;
      // Before a later generation, the first ring's line has all.
      const line = arrived.line ?? own.findLast(({ after }) => after < lineSequence)?.line ?? "";
      names[arrived.arrival - 1] = siteOfLine(line) === site.id ? `own ${lineSequence}` : `${line} ${lineSequence}`;
      if (!isSummed || !("bytes" in arrived)) continue;
      const read = decodeEvent(arrived.bytes);
      // Own events that do not leave the site are not compared.
      const isShared = read.kind === "event" && !/^(build:log|key:)/.test(read.event.eventType);
      if (isShared) projection.apply({ line, generation: generations.get(line) ?? 1, event: read.event });
    }
  }
  return { arrivals: names, sums: isSummed ? store.sums((line) => !isFrozen(server, line)) : null };
}

function arrivalsProblem(shown: readonly string[], known: readonly string[]): string | null {
  if (shown.length !== known.length) return `shows ${shown.length} arrivals, and its site has ${known.length}`;
  const at = known.findIndex((name, place) => name !== shown[place]);
  return at < 0 ? null : `shows ${shown[at]} as arrival ${at + 1}, which is ${known[at]}`;
}

class MemoryRows implements RowStore {
  readonly #rows = new Map<string, string>();
  readonly #sums = new Map<LineId, string>();

  get(kind: RowKind, line: LineId, id: string): string | null {
    return this.#rows.get(`${kind} ${line} ${id}`) ?? null;
  }

  set({ kind, row }: Row, text: string): void {
    this.#rows.set(`${kind} ${row.line} ${row.id}`, text);
  }

  sum(line: LineId): string | null {
    return this.#sums.get(line) ?? null;
  }

  setSum(line: LineId, sum: string): void {
    this.#sums.set(line, sum);
  }

  ended(): void {}

  sums(counts: (line: LineId) => boolean): Sums {
    return new Map([...this.#sums].filter(([line]) => counts(line)));
  }
}
