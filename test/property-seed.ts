// Property tests draw the same values in every run, so that a commit never fails by luck. For others:
// PROPERTY_SEED=$RANDOM npm run test:unit

import fc from "fast-check";

const DEFAULT_SEED = 2026;

const given = process.env["PROPERTY_SEED"] ?? "";
export const PROPERTY_SEED = given === "" ? DEFAULT_SEED : Number(given);
if (!Number.isInteger(PROPERTY_SEED)) throw new Error(`PROPERTY_SEED must be a whole number, not ${given}`);
fc.configureGlobal({ seed: PROPERTY_SEED });
