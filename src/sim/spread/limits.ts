// The bounds of simulated sites that spread their lines.

/** Each site reports to each link what changed, so often. As real links do (designs: heads every second). */
export const HEADS_EVERY_MS = 1_000;
/** Events in a page: few, so that a site that was away needs many. */
export const SPREAD_PAGE_EVENTS_MAX = 32;
/** Pages in a request. */
export const REQUEST_PAGES_MAX = 16;
/** A broken connection that nobody closed is noticed after this. */
export const SILENCE_NOTICED_MS = 3_000;
/** Between two attempts to connect. */
export const DIAL_AGAIN_MS = 500;
/** A page that was written to a stream counts as sent after this. */
export const SPREAD_WRITTEN_AFTER_MS = 1;
/** Faults over: within this every site has every event, and after it nothing is sent any more. */
export const SILENT_WITHIN_MS = 10_000;
/** The silence is watched for so long. */
export const WATCHED_FOR_MS = 10_000;
/** In the calm after the faults each line gets so many events for the trees to settle, and then so many that are measured. */
export const SETTLING_EVENTS = 6;
export const MEASURED_EVENTS = 3;
export const CALM_EVENT_EVERY_MS = 4_000;
/** Of the crowd: 2,000 sites, six links each, 0.5 % of the sites restart in each second. */
export const CROWD_SITES = 2_000;
export const CROWD_LINKS_PER_SITE = 6;
export const CROWD_CHURN_PER_S = 0.005;
export const CROWD_WRITERS = 4;
export const CROWD_FOR_MS = 30_000;
export const CROWD_SENDS_PER_SITE_MAX = 1.2;
export const CROWD_HOPS_MAX = 12;
/** Of a whole campaign: from so many seeds on, each probe must have been met. */
export const SEEDS_FOR_ALL_PROBES = 300;
export const SPREAD_STEPS_MAX = 20_000_000;
