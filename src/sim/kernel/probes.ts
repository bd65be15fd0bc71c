// Rare states that a simulation must have been in to be worth anything. A run counts what it met; a whole campaign of seeds in
// which one of them stayed at zero proves less than it seems, and fails.

export type ProbeCounts<Probe extends string> = { [P in Probe]?: number };

export function reached<Probe extends string>(counts: ProbeCounts<Probe>, probe: NoInfer<Probe>): void {
  counts[probe] = (counts[probe] ?? 0) + 1;
}
