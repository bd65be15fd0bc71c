// Whether whoever reads a stream may still read it: a key may be revoked and a certificate end while it is open. It is asked
// by time, not by silence, because a busy stream is never silent; and not for each page, because it costs a hash.

import type { Clock } from "../../ports/clock.ts";
import { ADMISSION_CHECK_MS_MAX } from "../limits.ts";

/** `ask`, once a second at most, or once a heartbeat where that is less; the first time after that. */
export function everyNowAndThen(
  clock: Pick<Clock, "monotonicMs">,
  heartbeatMs: number,
  ask: () => boolean,
): () => boolean {
  const everyMs = Math.min(heartbeatMs, ADMISSION_CHECK_MS_MAX);
  let askedAtMs = clock.monotonicMs();
  let answer = true;
  return () => {
    const nowMs = clock.monotonicMs();
    if (answer && nowMs - askedAtMs >= everyMs) {
      askedAtMs = nowMs;
      answer = ask();
    }
    return answer;
  };
}
