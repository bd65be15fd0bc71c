// The election's configuration: every field of the specification's ElectionConfig, under its name and
// with its default, and the one place where a combination is refused.

import { TenureError } from "../kit/errors.ts";
import { CLOCK_DRIFT_MAX } from "../kit/limits.ts";

export interface ElectionConfig {
  readonly electionTimeoutMinMs: number;
  readonly electionTimeoutMaxMs: number;
  readonly heartbeatIntervalMs: number;
  /** False: never campaigns by itself, still votes, still obeys a transfer. */
  readonly enableAutoFailover: boolean;
  /** Silence of the leader after which a follower reports it (an event, no action). */
  readonly failoverDetectionTimeoutMs: number;
  /** How long a transfer may wait for its target to catch up; writes go on meanwhile. */
  readonly transferTimeoutMs: number;
  /** False: every transfer is a forced one (design D7). */
  readonly transferLogSync: boolean;
  /** All voters or none: one without it makes no promise, and the lease would rest on nothing. */
  readonly enableLease: boolean;
  readonly leaseRenewalIntervalMs: number;
  readonly enablePriority: boolean;
  /** 0–255, higher is preferred. Shortens the timeout, never vetoes a vote (design D8). */
  readonly nodePriority: number;
}

export const ELECTION_DEFAULTS: ElectionConfig = {
  electionTimeoutMinMs: 150,
  electionTimeoutMaxMs: 300,
  heartbeatIntervalMs: 50,
  enableAutoFailover: true,
  failoverDetectionTimeoutMs: 300,
  transferTimeoutMs: 30_000,
  transferLogSync: true,
  enableLease: false,
  leaseRenewalIntervalMs: 50,
  enablePriority: false,
  nodePriority: 0,
};

/** Fills in the defaults; throws CONFIG_INVALID with every mistake at once. */
export function electionConfig(given: Partial<ElectionConfig> = {}): ElectionConfig {
  const config = { ...ELECTION_DEFAULTS, ...given };
  const mistakes = [...durationMistakes(config), ...relationMistakes(config)];
  if (mistakes.length > 0) {
    throw new TenureError("CONFIG_INVALID", `election configuration: ${mistakes.join("; ")}`);
  }
  return config;
}

/** How often the leader beats: the lease needs its own pace. */
export function beatIntervalMs(config: ElectionConfig): number {
  if (!config.enableLease) return config.heartbeatIntervalMs;
  return Math.min(config.heartbeatIntervalMs, config.leaseRenewalIntervalMs);
}

/**
 * How long a lease lasts on the leader's clock. A follower promises to refuse votes for the shortest
 * election timeout on its own clock; the leader's may run slow while the follower's runs fast (trap 21).
 */
export function leaseMs(config: ElectionConfig): number {
  return (config.electionTimeoutMinMs * (1 - CLOCK_DRIFT_MAX)) / (1 + CLOCK_DRIFT_MAX);
}

function durationMistakes(config: ElectionConfig): string[] {
  const mistakes: string[] = [];
  for (const [name, value] of Object.entries(config)) {
    if (!name.endsWith("Ms")) continue;
    if (typeof value !== "number" || !Number.isFinite(value) || value <= 0) {
      mistakes.push(`${name} must be a positive number of milliseconds, not ${String(value)}`);
    }
  }
  return mistakes;
}

function relationMistakes(config: ElectionConfig): string[] {
  const mistakes: string[] = [];
  if (config.electionTimeoutMaxMs <= config.electionTimeoutMinMs) {
    mistakes.push(
      `electionTimeoutMaxMs must be above electionTimeoutMinMs (${config.electionTimeoutMinMs}), or votes split for ever, found ${config.electionTimeoutMaxMs}`,
    );
  }
  if (config.heartbeatIntervalMs * 2 > config.electionTimeoutMinMs) {
    mistakes.push(
      `heartbeatIntervalMs must be at most half of electionTimeoutMinMs (${config.electionTimeoutMinMs}), or one lost heartbeat starts an election, found ${config.heartbeatIntervalMs}`,
    );
  }
  if (config.enableLease && config.leaseRenewalIntervalMs >= leaseMs(config)) {
    mistakes.push(
      `leaseRenewalIntervalMs must be below the lease of ${leaseMs(config).toFixed(0)} ms that electionTimeoutMinMs allows, found ${config.leaseRenewalIntervalMs}`,
    );
  }
  if (!Number.isInteger(config.nodePriority) || config.nodePriority < 0 || config.nodePriority > 255) {
    mistakes.push(`nodePriority must be an integer from 0 to 255, not ${config.nodePriority}`);
  }
  return mistakes;
}
