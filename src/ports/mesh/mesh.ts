// The mesh as the API, the SDK and the dashboard see it: which sites there are, and what this site knows of each. Shapes that are shown;
// they import types alone.

/** One site, as `GET /api/controllers` lists it (specification: ControllerNode). Times are wall milliseconds. */
export interface ControllerView {
  readonly id: string;
  readonly url: string;
  readonly name: string;
  readonly registeredAt: number;
  readonly lastHeartbeatAt: number;
  readonly expiresAt: number;
  /** False: its registration has expired. A display fact: it ends no trust. */
  readonly isActive: boolean;
  readonly metadata: { readonly [key: string]: unknown };
}
