// The roles that an API key or a client certificate may have. What each may do is the contract's (contract/roles.ts).

export const API_ROLES = ["viewer", "submitter", "agent", "client", "backup", "controller", "operator"] as const;
export type ApiRole = (typeof API_ROLES)[number];
