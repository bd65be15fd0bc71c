// What each site shows in the end: all arrivals, as production's reader has them, and the merged state that follows from them. Each node of a
// site has the same arrivals; sites whose sets of events are equal have the same merged state, in whatever order they came.

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
import type { SiteServer } from "./site.ts";
import type { MeshStage } from "./stage.ts";

const READ_WITHIN_MS = 30_000;

/** Null: every honest node shows what it must. */
export async function shownProblem(stage: MeshStage): Promise<string | null> {
  const { world } = stage;
  const hashes = new Map<string, string>();
  for (const site of stage.honest) {
    for (const name of site.names) {
      const server = site.server(name);
      if (server === undefined) return `${name} does not run`;
      let end: string | Shown | undefined;
      world.call(name, () => {
        shownBy(stage, server).then(
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
      // Who has evicted a site has other events than those who have not.
      if (!stage.sites.some(({ id }) => stage.ledger.hasEvicted(site.id, id))) hashes.set(name, end.hash);
    }
  }
  const [first, ...others] = [...hashes];
  const other = others.find(([, hash]) => hash !== first?.[1]);
  return other === undefined ? null : `${first?.[0]} and ${other[0]} have the same events, and show other states`;
}

interface Shown {
  readonly arrivals: readonly string[];
  readonly hash: string;
}

async function shownBy(stage: MeshStage, server: SiteServer): Promise<Shown> {
  const { digest } = stage;
  const store = new MemoryRows();
  const projection = new Projection(store, digest);
  const ownLine = server.fold.ownLine.lines?.generations.at(-1)?.line ?? "";
  const names: string[] = [];
  for await (const batch of arrivals({ own: server.archive, receipts: server.receipts }, 1)) {
    for (const arrived of batch) {
      const { lineSequence } = arrived;
      const line = arrived.line ?? ownLine;
      names[arrived.arrival - 1] = line === ownLine ? `own ${lineSequence}` : `${line} ${lineSequence}`;
      if (!("bytes" in arrived)) continue;
      const read = decodeEvent(arrived.bytes);
      // Own events that do not leave the site are not compared.
      const isShared = read.kind === "event" && !/^(build:log|key:)/.test(read.event.eventType);
      if (isShared) projection.apply({ line, generation: 1, event: read.event });
    }
  }
  return { arrivals: names, hash: store.hash((line) => !isFrozen(server, line)) };
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

  hash(counts: (line: LineId) => boolean): string {
    return projectionHash([EMPTY_SUM, ...[...this.#sums].filter(([line]) => counts(line)).map(([, sum]) => sum)]);
  }
}
