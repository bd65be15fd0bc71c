// Loaded into an agent before everything else (node --import): at SIGUSR2 it does what its variable says. `spin`: its loop does not turn any
// more. `sleep`: its wall clock is an hour ahead, as after an hour in which the machine slept; what it reads of the monotonic
// clock goes on as if nothing was, which is what Linux does.

const HOUR_MS = 3_600_000;
const wallNow = Date.now;
let aheadMs = 0;
Date.now = () => wallNow() + aheadMs;
process.on("SIGUSR2", () => {
  if (process.env["TROUBLE"] === "spin") for (;;);
  if (process.env["TROUBLE"] === "sleep") aheadMs += HOUR_MS;
});
