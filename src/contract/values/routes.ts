// The routes of values. Reads work on every node; writes are the leader's. The stream of changes has a path of its own, so that a value may have
// any name.

import { NoQuery, ReadQuery } from "../requests.ts";
import { READ, READ_ERRORS, type Route, WRITE_ERRORS } from "../route.ts";
import { shape } from "../shape.ts";
import { VALUE_BODY_BYTES_MAX } from "../limits.ts";
import * as schemas from "./schemas.ts";

/** NOT_SUPPORTED: nodes on Postgres have none. */
const LOOK = { ...READ, errors: [...READ_ERRORS, "NOT_SUPPORTED"] } as const;
const valueParams = shape(schemas.ValueParams);
const WRITE = {
  path: "/v1/values/:name",
  role: "client",
  // Who decides transactions writes values too, and leads no scopes for that.
  isAlsoFor: ["tc"],
  params: valueParams,
  kind: "write",
  isAdmin: false,
  limited: null,
} as const;
const CONDITION_ERRORS = [
  ...WRITE_ERRORS,
  "NOT_SUPPORTED",
  "CLUSTER_PAUSED",
  "STALE_EPOCH",
  "VERSION_CONFLICT",
  "txn_locked",
] as const;

export const VALUE_ROUTES = {
  values: {
    ...LOOK,
    path: "/v1/values",
    summary: "Values, by name.",
    query: shape(schemas.ValuesQuery),
    answer: schemas.ValuesAnswer,
  },
  value: {
    ...LOOK,
    path: "/v1/values/:name",
    summary: "One value.",
    params: valueParams,
    query: shape(ReadQuery),
    answer: schemas.ValueAnswer,
  },
  putValue: {
    ...WRITE,
    method: "PUT",
    summary: "Write a value; only on one version, or while an epoch of a scope is in force, where these are named.",
    query: shape(NoQuery),
    body: shape(schemas.PutValueBody),
    bodyBytesMax: VALUE_BODY_BYTES_MAX,
    answer: schemas.PutValueAnswer,
    errors: [...CONDITION_ERRORS, "QUOTA_EXCEEDED"],
  },
  deleteValue: {
    ...WRITE,
    method: "DELETE",
    summary: "Delete a value, under the same conditions.",
    query: shape(schemas.DeleteValueQuery),
    body: null,
    answer: schemas.DeleteValueAnswer,
    errors: CONDITION_ERRORS,
  },
  watchValues: {
    ...LOOK,
    path: "/v1/watch/values",
    summary: "Changes of values as they are committed, as a stream that any node can resume.",
    query: shape(schemas.WatchValuesQuery),
    answer: null,
    contentType: "text/event-stream",
    headers: ["Last-Event-ID"],
  },
} as const satisfies Readonly<Record<string, Route>>;
