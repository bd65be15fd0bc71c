// The Postgres backend keeps every promise of an elector where it waits by polling, too (npm run test:long).

import { postgresConformance } from "./test-postgres.ts";

postgresConformance("poll");
