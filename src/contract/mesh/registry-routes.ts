// The routes of the registry of sites. Another site (role `controller`) registers and is heard; operators approve and evict.

import { NoQuery } from "../requests.ts";
import { READ, type Route, WRITE_ERRORS } from "../route.ts";
import { shape } from "../shape.ts";
import * as schemas from "./registry-schemas.ts";

const noQuery = shape(NoQuery);
const params = shape(schemas.ControllerParams);

/** Each call may write an event: counted as those of operators are. */
const SITE = {
  method: "POST",
  role: "controller",
  query: noQuery,
  kind: "write",
  isAdmin: false,
  limited: "admin",
} as const;
const SITE_ERRORS = [...WRITE_ERRORS, "MESH_DISABLED", "NOT_SUPPORTED", "CONTROLLER_CONFLICT", "RATE_LIMITED"] as const;
const OPERATOR = {
  ...SITE,
  role: "operator",
  isAdmin: true,
  params,
  answer: schemas.SiteAnswer,
  errors: [...WRITE_ERRORS, "STALE_EPOCH", "MESH_DISABLED", "NOT_SUPPORTED", "RATE_LIMITED"],
} as const;

export const REGISTRY_ROUTES = {
  registerController: {
    ...SITE,
    path: "/api/controllers/register",
    summary: "Register a site, or say again where it is.",
    params: null,
    body: shape(schemas.RegisterControllerBody),
    answer: schemas.RegisteredAnswer,
    errors: SITE_ERRORS,
  },
  controllerHeartbeat: {
    ...SITE,
    path: "/api/controllers/:id/heartbeat",
    summary: "A registered site is still there.",
    params,
    body: shape(schemas.HeartbeatBody),
    answer: schemas.HeartbeatAnswer,
    errors: SITE_ERRORS,
  },
  controllers: {
    ...READ,
    path: "/api/controllers",
    summary: "This site, and those that are registered here.",
    query: shape(schemas.ControllersQuery),
    answer: schemas.ControllersAnswer,
    isForSites: true,
  },
  approveSite: {
    ...OPERATOR,
    path: "/v1/mesh/sites/:id/approve",
    summary: "Take what a site sends, or take it back; with a ring, also in place of the one that it has registered.",
    body: shape(schemas.ApproveSiteBody),
  },
  evictSite: {
    ...OPERATOR,
    path: "/v1/mesh/sites/:id/evict",
    summary: "Take nothing from a site any more.",
    body: shape(schemas.EvictSiteBody),
  },
} as const satisfies Readonly<Record<string, Route>>;
