export * from "./decide.ts";
export * from "./earlier.ts";
export * from "./events.ts";
export * from "./limits.ts";
export * from "./model.ts";
export * from "./possession.ts";
export * from "./registry.ts";
