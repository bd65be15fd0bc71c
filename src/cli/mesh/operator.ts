// What an operator does with a site's place in the mesh: whom it believes, whether it gives out its own line, and the evidence of forks.

import type { Caller } from "../../client/caller.ts";
import { assertNever, TenureError } from "../../contract/errors.ts";
import { toSnake } from "../../contract/index.ts";
import type { DepartureView } from "../../ports/mesh/links.ts";
import type { ForkView, GateView } from "../../ports/mesh/lines.ts";
import { json, printable, table } from "../kit/output.ts";
import { printed, stdoutPaint } from "../kit/print.ts";
import { MESH_CALL_MS } from "../limits.ts";

export type OperatorStep =
  | { readonly verb: "approve"; readonly site: string; readonly ring: string | null }
  | { readonly verb: "evict"; readonly site: string }
  | { readonly verb: "resume"; readonly isNewLine: boolean }
  | { readonly verb: "leave" }
  | { readonly verb: "join" }
  | { readonly verb: "evidence"; readonly site: string | null };

interface SiteShown {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  readonly status: string;
}

interface Known {
  readonly own: { readonly controller: string } | null;
  readonly sites: readonly { readonly id: string }[];
}

export async function operate(
  caller: Caller,
  step: OperatorStep,
  isJson: boolean,
  signal: AbortSignal,
): Promise<number> {
  const options = { signal, timeoutMs: MESH_CALL_MS };
  // Each of them does nothing the second time, but for a new line, which is a new one each time.
  const post = async <T>(path: string, body: object, isIdempotent = true): Promise<T> =>
    caller.bodyOf<T>(await caller.mutate({ method: "POST", path, body, isIdempotent }, options));
  switch (step.verb) {
    case "approve":
    case "evict": {
      const body = step.verb === "approve" && step.ring !== null ? { ring: step.ring } : {};
      const site = await post<SiteShown>(`/v1/mesh/sites/${step.site}/${step.verb}`, body);
      return printed(isJson ? json(site) : `${printable(site.id)} is ${site.status}\n`);
    }
    case "resume": {
      const { gate } = await post<{ gate: GateView }>(
        "/v1/mesh/resume",
        step.isNewLine ? { new_line: true } : {},
        !step.isNewLine,
      );
      const text = step.isNewLine
        ? "The next line begins, and its ring of keys is written in a moment (tenure mesh status). Where this line had forked, other sites approve that ring: tenure mesh key shows it.\n"
        : "This site's line is given out.\n";
      return printed(isJson ? json(gateObject(gate)) : text);
    }
    case "leave":
    case "join": {
      const departure = await post<DepartureView>(`/v1/mesh/${step.verb}`, {});
      return printed(isJson ? json(toSnake(departure)) : departureText(departure));
    }
    case "evidence": {
      const path = `/v1/mesh/evidence${step.site === null ? "" : `?site=${step.site}`}`;
      const { forks } = await caller.readJson<{ forks: readonly ForkView[] }>(path, options);
      // A name that nobody has must not read as a site that is in order.
      if (forks.length === 0 && step.site !== null) await checkKnown(caller, step.site, options);
      return printed(isJson ? json({ forks }) : forksText(forks));
    }
    default:
      return assertNever(step, "mesh");
  }
}

async function checkKnown(caller: Caller, site: string, options: { signal: AbortSignal; timeoutMs: number }) {
  const { own, sites } = await caller.readJson<Known>("/v1/mesh/sites", options);
  if (own?.controller === site || sites.some(({ id }) => id === site)) return;
  throw new TenureError("NOT_FOUND", `No site ${site} is known here.`);
}

export function gateObject({ state, sinceMs, missing, why }: GateView) {
  return { state, since_ms: sinceMs, missing, why };
}

function departureText({ controller, leftAt, confirmed, unconfirmed }: DepartureView): string {
  const site = printable(controller);
  if (leftAt === null) return `${site} takes part in its mesh.\n`;
  const lines = [
    `${site} has left its mesh, at event ${leftAt} of its line. Every link has ended.`,
    confirmed.length === 0
      ? "No other site has confirmed that it knows."
      : `Known at: ${confirmed.map(printable).join(", ")}.`,
    ...(unconfirmed.length === 0
      ? []
      : [
          `Not confirmed by: ${unconfirmed.map(printable).join(", ")}. Where none of the sites above passes it on to them: tenure mesh evict ${site}, there.`,
        ]),
    'Set mode = "standalone" under [mesh], without parent_urls and api_key_file, on every node, and restart them one after the other. To come back: mode = "distributed", and tenure mesh join.',
  ];
  return `${lines.join("\n")}\n`;
}

/** Of a signed note. */
function sizeOf(note: unknown): string {
  return typeof note === "string" ? (note.split("\n")[1] ?? "-") : "-";
}

function forksText(forks: readonly ForkView[]): string {
  if (forks.length === 0) return "no line is proven to have forked\n";
  const rows = forks.map(({ line, sequence, evidence }) => [
    line,
    `${sequence}`,
    sizeOf(evidence?.["smaller"]),
    sizeOf(evidence?.["larger"]),
  ]);
  return table(
    ["LINE", "EVENT", "SIGNED AT", "AND AT"],
    rows.map((row) => row.map(printable)),
    stdoutPaint(),
  );
}
