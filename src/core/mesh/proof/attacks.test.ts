import { describe, test } from "vitest";
import { systemDigest } from "../../../drivers/system/digest.ts";
import { ATTACKS } from "./test-attacks.ts";

describe("what hostile sites and relays try", () => {
  test.each(ATTACKS)("$name", ({ run }) => run(systemDigest));
});
