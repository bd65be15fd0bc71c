// How long a client waits, from the one table of all layers.

export {
  AGENT_DRAIN_MS,
  AGENT_GRACE_MS,
  ATTEMPT_MS,
  CALL_MS,
  RENEWAL_ATTEMPT_MS,
  STREAM_OPEN_MS,
  STREAM_SILENCE_MS,
} from "../core/kit/timeouts.ts";
