// The door of the simulation of the mesh.

export { MeshCampaign } from "./campaign.ts";
export type { MeshKnobs, MeshLimits } from "./knobs.ts";
export type { MeshFault } from "./plan.ts";
export { runMeshSeed, type MeshRunOptions, type MeshRunResult } from "./run.ts";
