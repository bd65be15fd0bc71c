// The bounds of a real server's world.

/** How often a stopping leader looks whether another has taken over. */
export const HAND_OVER_POLL_MS = 5;
/** Who was not heard for so long is no node of the site. */
export const NODE_GONE_MS = 60_000;
/** Fifty-nine years of generations. */
export const GENERATION_MS = 15 * 60_000;
/** Of the secret by which nodes know each other. */
export const SECRET_TEXT_BYTES_MIN = 32;
/** So long a coordinator that starts asks the others for an answer, and so long it waits between two rounds. */
export const ANNOUNCED_MS = 10_000;
export const ANNOUNCED_AGAIN_MS = 500;
