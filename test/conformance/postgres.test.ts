// The Postgres backend keeps every promise of an elector, against a real server; with `wait: "poll"`: postgres-poll.test.ts.

import { postgresConformance } from "./test-postgres.ts";

postgresConformance("block");
