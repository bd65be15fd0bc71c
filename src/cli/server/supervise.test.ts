import { describe, expect, it } from "vitest";
import { parseServerConfig } from "../../contract/index.ts";
import { electionConfig } from "../../core/raft/index.ts";
import { specOf } from "./supervise.ts";

const ENVIRONMENT = {
  PATH: "/bin",
  PGPASSWORD: "secret",
  PGHOST: "db",
  TENURE_NODE_ID: "n1",
  TENURE_API_KEY: "secret",
};
const raw = { node_id: "n1", data_dir: "/var/lib/tenure", agent: { enabled: true, key_file: "/etc/agent.key" } };
const config = parseServerConfig(raw, { environment: {}, configDir: "/etc/tenure", checkElection: electionConfig });
const { controller, agent } = specOf(config, [], ENVIRONMENT);

describe("what a supervisor gives its children", () => {
  it("is to the controller all of its own environment", () => {
    expect(controller.env).toMatchObject({ ...ENVIRONMENT, TENURE_SUPERVISED: "1" });
  });

  it("is to the agent nothing by which the server gets at its database or its peers: jobs inherit it", () => {
    expect(agent.env).toMatchObject({
      PATH: "/bin",
      TENURE_API_KEY_FILE: "/etc/agent.key",
      TENURE_CONFIG: "/dev/null",
    });
    expect(JSON.stringify(agent)).not.toContain("secret");
    for (const name of ["PGPASSWORD", "PGHOST", "TENURE_NODE_ID", "TENURE_API_KEY", "TENURE_SUPERVISED"]) {
      expect(agent.env).not.toHaveProperty(name);
    }
  });
});
