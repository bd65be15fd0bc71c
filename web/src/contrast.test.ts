// Text can be read: every pair of text and ground in the style sheet, light and dark, has a contrast of at least 4.5 (WCAG AA).

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const CONTRAST_MIN = 4.5;
/** For what is no text: the mark of the focus, hatching. */
const SHAPE_CONTRAST_MIN = 3;

const css = readFileSync(new URL("./style.css", import.meta.url), "utf8");
const [light, dark] = [...css.matchAll(/:root \{([^}]*)\}/g)].map(([, body]) => colours(body ?? ""));

function colours(body: string): Readonly<Record<string, string>> {
  return Object.fromEntries([...body.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [name, value]));
}

function luminance(colour: string): number {
  const parts = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255);
  const [red, green, blue] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * (red ?? 0) + 0.7152 * (green ?? 0) + 0.0722 * (blue ?? 0);
}

function contrast(one: string, other: string): number {
  const [low, high] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
  return ((high ?? 0) + 0.05) / ((low ?? 0) + 0.05);
}

const TEXTS: readonly [text: string, ground: string][] = [
  ["text", "ground"],
  ["text", "panel"],
  ["text", "plain-ground"],
  ["muted", "ground"],
  ["muted", "panel"],
  ["link", "ground"],
  ["link", "panel"],
  ["link", "plain-ground"],
  ["bar-text", "bar"],
  ["bar-muted", "bar"],
  ["gone-text", "gone"],
  ["good", "good-ground"],
  ["good", "panel"],
  ["bad", "bad-ground"],
  ["bad", "ground"],
  ["bad", "panel"],
  ["busy", "busy-ground"],
  ["plain", "plain-ground"],
  ["term-text", "term"],
];

it("knows how black on white contrasts", () => expect(contrast("#000000", "#ffffff")).toBeCloseTo(21, 5));

describe.each([
  ["light", light],
  ["dark", dark],
])("%s", (_name, found) => {
  it.each(TEXTS)("%s on %s", (text, ground) => {
    expect(contrast(found?.[text] ?? "", found?.[ground] ?? "")).toBeGreaterThanOrEqual(CONTRAST_MIN);
  });

  it("the focus of a bar in the timeline: one ring against the bar, one against its lane", () => {
    const rule = /\.term:focus-visible \{([^}]*)\}/.exec(css)?.[1] ?? "";
    const inner = /inset [^;]*var\(--([\w-]+)\)/.exec(rule)?.[1] ?? "";
    expect(contrast(found?.[inner] ?? "", found?.["term"] ?? "")).toBeGreaterThanOrEqual(SHAPE_CONTRAST_MIN);
    expect(contrast(found?.["focus"] ?? "", found?.["panel"] ?? "")).toBeGreaterThanOrEqual(SHAPE_CONTRAST_MIN);
    // The one around it is drawn where the lane is, not inside of the bar.
    expect(/outline-offset: (-?\d+)/.exec(rule)?.[1]).toBe("0");
  });

  it.each(["focus", "hatch"])("%s on the ground and on panels", (shape) => {
    for (const ground of ["ground", "panel"]) {
      expect(contrast(found?.[shape] ?? "", found?.[ground] ?? "")).toBeGreaterThanOrEqual(SHAPE_CONTRAST_MIN);
    }
  });
});

it("nothing is made pale by being seen through: its contrast would be known to nobody", () => {
  expect(css).not.toMatch(/\bopacity:/);
});

it("every colour of the one scheme is in the other, and none stands outside of them", () => {
  expect(Object.keys(dark ?? {}).toSorted()).toEqual(Object.keys(light ?? {}).toSorted());
  expect(css.replaceAll(/:root \{[^}]*\}/g, "")).not.toMatch(/#[0-9a-f]{3,8}\b/i);
});
