// Rare states that a campaign of spreading sites must have been in (kernel/probes.ts).

export const PROBES = [
  "pruned",
  "grafted-after-a-second",
  "grafted-when-a-link-went-down",
  "duplicate-page",
  "gap-on-a-stream",
  "gap-answered",
  "page-refused",
  "page-not-read",
  "page-lost-with-its-link",
  "arrived-and-forgotten",
  "lines-took-turns",
  "relayed",
  "caught-up-by-many-pages",
  "wiped-site-came-back",
  "hub-was-down",
] as const;

export type Probe = (typeof PROBES)[number];
