export * from "./gate.ts";
