// `npm run bench -- [codec|gate|failover|writes|transfer|soak|jobs|events|api|loop|turns|idle|mesh|tc-failover|values|txn] [--json] …`: one benchmark by name; without a name the codec's.

const BENCHES: Readonly<Record<string, () => Promise<unknown>>> = {
  codec: () => import("./codec.ts"),
  gate: () => import("./gate.ts"),
  failover: () => import("./failover.ts"),
  writes: () => import("./writes.ts"),
  transfer: () => import("./transfer.ts"),
  soak: () => import("./soak.ts"),
  jobs: () => import("./jobs.ts"),
  events: () => import("./events.ts"),
  api: () => import("./api.ts"),
  loop: () => import("./loop.ts"),
  turns: () => import("./turns.ts"),
  idle: () => import("./idle.ts"),
  mesh: () => import("./mesh.ts"),
  "tc-failover": () => import("./tc-failover.ts"),
  values: () => import("./values.ts"),
  txn: () => import("./txn.ts"),
};
const EXIT_USAGE = 64;

const name = process.argv[2]?.startsWith("-") === false ? process.argv[2] : "codec";
const bench = Object.hasOwn(BENCHES, name) ? BENCHES[name] : undefined;
if (bench === undefined) {
  console.error(`bench: there is no ${JSON.stringify(name)}, only ${Object.keys(BENCHES).join(", ")}`);
  process.exitCode = EXIT_USAGE;
} else {
  await bench();
  // As in test/chaos/main.ts: Node may spin in its own cleanup.
  process.exit();
}
