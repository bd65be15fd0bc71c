// `tenure/client`: a client of Tenure's own servers, for Node and browsers. It needs `fetch`, and no package next to this one.

import { requireNode } from "../drivers/system/host.ts";

export { type ErrorCode, TenureError } from "../core/kit/errors.ts";
export * from "../client/index.ts";

requireNode();
