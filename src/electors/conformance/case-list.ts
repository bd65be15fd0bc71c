// How a case is written down.

import type { Stage } from "./stage.ts";
import type { Fault } from "./world.ts";

export interface Case {
  readonly name: string;
  readonly needs?: readonly Fault[];
  play(stage: Stage): Promise<void>;
}
