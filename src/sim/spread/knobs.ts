// What one seed decides about a run of spreading sites before it begins.

import type { Random } from "../../core/kit/random.ts";
import { CROWD_FOR_MS, CROWD_LINKS_PER_SITE, CROWD_SITES, CROWD_WRITERS } from "./limits.ts";
import type { Shape } from "./topology.ts";

/** What `drawAll` draws. */
export type SpreadKnobs = Readonly<ReturnType<typeof drawAll>>;

export interface SpreadLimits {
  /** 2,000 sites, and the figures that are asked of them. */
  readonly crowd?: boolean | undefined;
  readonly sites?: number | undefined;
  readonly shape?: Shape | undefined;
}

export function drawKnobs(random: Random, { crowd, sites, shape }: SpreadLimits = {}) {
  const drawn = drawAll(random);
  if (crowd === true) return { ...drawn, ...CROWD };
  return { ...drawn, shape: shape ?? drawn.shape, sites: sites ?? drawn.sites };
}

const CROWD = {
  crowd: true,
  shape: "random" as Shape,
  sites: CROWD_SITES,
  linksPerSite: CROWD_LINKS_PER_SITE,
  writers: CROWD_WRITERS,
  writeEveryMs: 800,
  latencyMinMs: 5,
  latencyMaxMs: 60,
  applyMs: 5,
  faults: 0,
  faultsUntilMs: CROWD_FOR_MS,
};

function drawAll(random: Random) {
  const latencyMinMs = random.fork("latency").between(0.2, 5);
  return {
    crowd: false,
    shape: random.fork("shape").pick<Shape>(["mesh", "chain", "tree", "star", "ring", "random"]),
    sites: random.fork("sites").pick([3, 4, 5, 5, 6, 8]),
    linksPerSite: 3,
    writers: random.fork("writers").pick([1, 1, 2, 3]),
    /** On average, of each writer. */
    writeEveryMs: random.fork("write").pick([20, 100, 400]),
    latencyMinMs,
    latencyMaxMs: latencyMinMs + random.fork("spread").between(0.5, 20),
    /** From a page's arrival until its events are applied, at most. */
    applyMs: random.fork("apply").pick([1, 5, 15]),
    faults: 3 + random.fork("faults").below(10),
    faultsUntilMs: 8_000 + 1_000 * random.fork("duration").below(10),
  };
}
