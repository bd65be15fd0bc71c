// The bounds of simulated sites in a mesh.

/** Steps of one run. */
export const MESH_STEPS_MAX = 3_000_000;
/** How far ahead an event's time may be and still move the clock of who takes it, as in production. */
export const MESH_SKEW_MS_MAX = 1_000;
/** A site that was crashed on purpose is started again after this time. */
export const SITE_RESTART_MS = 50;
/** How often operators look. */
export const OPERATOR_LOOKS_MS = 250;
/** A site that is to be restored is cut off for so long at least: longer than the latest message takes. */
export const CUT_OFF_FOR_MS = 2_000;
/** Looks in a row at which all other sites had applied all that they have logged. */
export const SETTLED_LOOKS = 3;
