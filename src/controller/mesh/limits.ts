// The bounds of a site's part in the mesh.

/** Pages that wait for the append before theirs; past them whoever brings one is refused for now. */
export const RECEIPTS_WAITING_MAX = 1_024;
export const RECEIPTS_WAITING_BYTES_MAX = 16 * 1024 * 1024;
