// What a supervisor is told when it takes the place of the process that has read the configuration.

/** Holds it, as JSON; taken out of the environment before anybody inherits it. */
export const SPEC = "TENURE_SUPERVISOR_SPEC";

export interface SupervisorSpec {
  readonly nodeId: string;
  /** One supervisor at a time has it. */
  readonly dataDir: string;
  readonly level: "trace" | "debug" | "info" | "warn" | "error" | "silent";
  readonly moonlights: boolean;
  readonly controller: ChildSpec;
  readonly agent: ChildSpec;
}

/** Of Node. */
export interface ChildSpec {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}
