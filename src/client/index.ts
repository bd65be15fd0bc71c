// The door: a client of Tenure's own servers.

export type { CallOptions, ReadOptions } from "./caller.ts";
export { type Client, type ClientOptions, createClient, type NodeAnswer } from "./client.ts";
export type { ClientFetch } from "./exchange.ts";
export type { AcquireRequest, ClientScopes, ScopeHold } from "./scopes.ts";
export type * from "./views.ts";
