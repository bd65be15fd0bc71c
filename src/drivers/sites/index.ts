// The door to other sites of a mesh.

export { httpSites, type SiteAccess } from "./http-sites.ts";
