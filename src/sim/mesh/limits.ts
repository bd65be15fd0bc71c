// The bounds of simulated sites in a mesh.

/** Steps of one run. */
export const MESH_STEPS_MAX = 3_000_000;
/** How far ahead an event's time may be and still move the clock of who takes it, as in production. */
export const MESH_SKEW_MS_MAX = 1_000;
