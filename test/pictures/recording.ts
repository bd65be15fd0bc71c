// A terminal session as an SVG: each line appears when it was printed, and all of it begins again after a while. A viewer that plays no animations, or whose
// user wants none, shows the whole session.

export interface PrintedLine {
  readonly atMs: number;
  readonly text: string;
}

export interface RecordingOptions {
  readonly command: string;
  /** What stays on the screen before it begins again. */
  readonly holdMs: number;
  /** In lines that have it: the colour. The first that fits counts. */
  readonly colours: readonly (readonly [RegExp, string])[];
}

const LINE_PX = 21;
const CHARACTER_PX = 8.43;
const PADDING_PX = 18;
const BAR_PX = 34;
const FADE_MS = 120;
const TEXT = "#d8dee9";

export function svgOf(lines: readonly PrintedLine[], { command, holdMs, colours }: RecordingOptions): string {
  const shown: readonly PrintedLine[] = [{ atMs: 0, text: `$ ${command}` }, ...lines];
  const width = Math.ceil(Math.max(...shown.map(({ text }) => text.length)) * CHARACTER_PX + 2 * PADDING_PX);
  const height = BAR_PX + shown.length * LINE_PX + 2 * PADDING_PX;
  const wholeMs = Math.max(...shown.map(({ atMs }) => atMs)) + holdMs;
  const colourOf = (text: string): string => colours.find(([pattern]) => pattern.test(text))?.[1] ?? TEXT;
  const rules = shown.map(({ atMs }, at) => {
    const [from, to] = [atMs, atMs + FADE_MS].map((ms) => ((100 * ms) / wholeMs).toFixed(2));
    return atMs === 0 ? "" : `@keyframes l${at} { 0%, ${from}% { opacity: 0 } ${to}%, 100% { opacity: 1 } }`;
  });
  const texts = shown.map(({ atMs, text }, at) => {
    const y = BAR_PX + PADDING_PX + at * LINE_PX + LINE_PX / 2;
    const animation = atMs === 0 ? "" : ` style="animation: l${at} ${wholeMs}ms linear infinite"`;
    return `<text x="${PADDING_PX}" y="${y}" fill="${colourOf(text)}"${animation}>${escaped(text)}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(command)}">`,
    "<style>",
    "text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre }",
    ...rules.filter((rule) => rule !== ""),
    "@media (prefers-reduced-motion: reduce) { text { animation: none !important } }",
    "</style>",
    `<rect width="${width}" height="${height}" rx="10" fill="#1e222a"/>`,
    ...["#ff5f57", "#febc2e", "#28c840"].map(
      (colour, at) => `<circle cx="${PADDING_PX + 4 + at * 20}" cy="${BAR_PX / 2 + 3}" r="6" fill="${colour}"/>`,
    ),
    ...texts,
    "</svg>",
    "",
  ].join("\n");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
