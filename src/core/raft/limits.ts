// The bounds of Raft's own arithmetic and buffers. What is configured and what nodes agree on is in core/kit/limits.ts.

/** Strain below it is forgotten: a half of a half never ends. */
export const STRAIN_MS_MIN = 1;
/**
 * Messages are written one after the other into common buffers of this size: a buffer of its own is the
 * dearest part of a small message. Small enough that a kept message does not keep much else alive.
 */
export const MESSAGE_BUFFER_BYTES = 8 * 1024;
