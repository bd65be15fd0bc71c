// Rare states that a campaign of coordinators must have been in (kernel/probes.ts).

export const PROBES = [
  "candidacy-lost",
  "leader-expired",
  "leader-yielded-to-a-higher-term",
  "leader-released",
  "gate-closed-and-opened-again",
  "boot-wait-refused",
  "lease-active-refused",
  "older-roster-refused",
  "older-term-refused",
  "voter-joined",
  "voter-left",
  "voter-retired",
  "voter-replaced",
  "left-and-came-back",
  "registry-written",
  "registry-refused",
  "registry-undone",
  "registry-unknown",
  "generation-refused",
  "recovered-into-a-generation",
  "ledger-damaged",
  "torn-ledger-write",
  "identity-refused",
  "odd-ttl-answered",
] as const;

export type Probe = (typeof PROBES)[number];
