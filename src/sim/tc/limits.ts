// The bounds of simulated coordinators.

export const TC_STEPS_MAX = 2_000_000;
/** Membership leases expire; each node that was wiped, or had left, is removed and admitted again, one after the other. */
export const TC_CONVERGE_MS = 90_000;
/** Once all agree: two looks of a node at its registration, by a slow clock, and the change that follows from them. */
export const TC_UNDER_WAY_MS = 12_000;
/** Silence is watched for so long. */
export const TC_STEADY_MS = 12_000;
/** Between two looks of the operator, once the faults are over. */
export const TC_RESCUE_EVERY_MS = 5_000;
/** A stop that is in order: its limits by a slow clock, and the longest pause of a plan. */
export const TC_STOPPED_WITHIN_MS = 22_000;
/** Between two looks at what the services show. */
export const TC_LOOK_EVERY_MS = 1_000;
/** A request to be registered may be taken by a leader so much later. */
export const TC_LATE_REGISTRATION_MS = 20_000;
/** A campaign, of a slow clock, that began while somebody wanted it; and the longest pause of a plan. */
export const TC_CAMPAIGN_MS = 18_000;
/** More terms than these are not won in so short a time, whatever goes wrong. */
export const TC_WINS_MAX = 4;
export const TC_WINS_WITHIN_MS = 1_000;
