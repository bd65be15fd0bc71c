// The bounds of simulated coordinators.

export const TC_STEPS_MAX = 2_000_000;
/** Membership leases expire; each node that was wiped, or had left, is removed and admitted again, one after the other. */
export const TC_CONVERGE_MS = 90_000;
/** Silence is watched for so long. */
export const TC_STEADY_MS = 12_000;
/** Between two looks of the operator, once the faults are over. */
export const TC_RESCUE_EVERY_MS = 5_000;
