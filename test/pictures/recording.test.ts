import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { svgOf } from "./recording.ts";

const OPTIONS = { command: "npm start", holdMs: 1_000, colours: [[/kill/, "#f00"]] } as const;

describe("a recording", () => {
  const svg = svgOf([{ atMs: 0, text: "starts" }, { atMs: 3_000, text: "kill -9 <n1> & \"so\"" }], OPTIONS); // prettier-ignore

  it("shows each line when it was printed, and begins again after the last one", () => {
    expect(svg).toContain("@keyframes l2 { 0%, 75.00% { opacity: 0 } 78.00%, 100% { opacity: 1 } }");
    expect(svg).toContain("animation: l2 4000ms linear infinite");
    expect(svg).not.toContain("@keyframes l1 ");
  });

  it("escapes what is markup, and colours what is meant", () => {
    expect(svg).toContain(
      'fill="#f00" style="animation: l2 4000ms linear infinite">kill -9 &lt;n1&gt; &amp; &quot;so&quot;<',
    );
  });

  it("shows the whole session to whoever wants no animations", () => {
    expect(svg).toContain("prefers-reduced-motion");
    expect(svg.match(/<text /g)).toHaveLength(3);
  });
});

describe("the pictures of README.md", () => {
  const pictures = [...readFileSync("README.md", "utf8").matchAll(/"(docs\/pictures\/[^"]+)"/g)].map(
    ([, path]) => path!,
  );

  it("are there", () => {
    expect(pictures.length).toBeGreaterThan(0);
    expect(pictures.filter((path) => !existsSync(path))).toEqual([]);
  });

  it("have no key of an operator in them", () => {
    const [svg] = pictures.filter((path) => path.endsWith(".svg"));
    expect(readFileSync(svg!, "utf8")).not.toMatch(/key=[\w-]{8}|TENURE_API_KEY=/);
  });
});
