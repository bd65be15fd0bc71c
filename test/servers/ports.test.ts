import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { claim, freePort } from "./ports.ts";

test("a port that was handed out can be listened on", async () => {
  const server = createServer().listen(await freePort(), "127.0.0.1");
  await once(server, "listening");
  server.close();
});

test("a port that was handed out is nobody else's while its process lives, although nobody listens on it", async () => {
  const port = await freePort();
  expect(await claim(port)).toBe(false);
  const ports = fileURLToPath(new URL("ports.ts", import.meta.url));
  const program = `console.log(await (await import(${JSON.stringify(ports)})).claim(${port}))`;
  const other = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said] = (await once(other.stdout, "data")) as [Buffer];
  expect(said.toString().trim()).toBe("false");
});
