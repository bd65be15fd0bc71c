// How a case is written down.

import type { LogStage } from "./stage.ts";
import type { LogFault } from "./world.ts";

export interface Case {
  readonly name: string;
  readonly needs?: readonly LogFault[];
  play(stage: LogStage): Promise<void>;
}
