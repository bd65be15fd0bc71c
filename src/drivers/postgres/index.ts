// The door of the Postgres driver: sessions and lent clients over the package `pg`, or over a user's own pool.

export { type PooledClient, poolDriver, poolLender } from "./user-pool.ts";
export { urlDriver, urlLender } from "./url.ts";
