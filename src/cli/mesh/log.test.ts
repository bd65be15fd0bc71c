import { expect, it } from "vitest";
import type { Caller } from "../../client/caller.ts";
import { MESH_LOG_PAGE } from "../limits.ts";
import { type LogStep, showLog } from "./log.ts";

const STEP: LogStep = {
  verb: "log",
  site: null,
  type: null,
  entity: null,
  after: null,
  limit: null,
  isFollowed: false,
};
const event = (arrival: number) => ({
  arrival,
  site: "paris",
  line: "paris.0",
  line_sequence: arrival * 2,
  timestamp: 0,
  event_type: "build:submitted",
  entity_id: `job-${arrival}`,
  payload: { snake_key: { camelKey: 1 } },
});

/** A node to which events arrive; `grow`: what each pause of a follower brings. */
function stage(
  arrivals: number,
  dropped = 0,
  grow: readonly number[] = [],
  changed: (one: ReturnType<typeof event>) => object = (one) => one,
) {
  const world = { arrivals, asked: [] as string[], out: "", warned: [] as string[], pauses: 0 };
  const over = new AbortController();
  const read = async ({ path }: { path: string }) => {
    world.asked.push(path);
    const query = new URL(path, "http://x").searchParams;
    const limit = Number(query.get("limit"));
    const after = query.get("after_arrival");
    const all = Array.from({ length: world.arrivals }, (_, at) => at + 1).filter((one) => one > dropped);
    const rest = after === null ? all.slice(-limit) : all.filter((one) => one > Number(after)).slice(0, limit);
    const isFull = after !== null && rest.length === limit;
    const next = isFull ? rest.at(-1)! : null;
    const body = { events: rest.map(event).map(changed), next, dropped_through: dropped, through: world.arrivals };
    return { json: () => Promise.resolve(body) };
  };
  const show = (step: Partial<LogStep>, isJson = false) =>
    showLog(
      { read } as unknown as Caller,
      { ...STEP, ...step },
      {
        isJson,
        write: async (text) => void (world.out += text),
        warn: (text) => void world.warned.push(text),
        pause: async () => {
          const more = grow[world.pauses++];
          if (more === undefined) over.abort();
          else world.arrivals += more;
        },
      },
      over.signal,
    );
  const shown = (): number[] => [...world.out.matchAll(/job-(\d+)/g)].map(([, one]) => Number(one));
  return { world, show, shown };
}

const to = (last: number, first = 1): number[] => Array.from({ length: last - first + 1 }, (_, at) => first + at);

it("shows the newest, one line each, or so many of them as were asked for", async () => {
  const { world, show, shown } = stage(MESH_LOG_PAGE + 30);
  await show({});
  expect(shown()).toEqual(to(MESH_LOG_PAGE + 30, 31));
  expect(world.out.split("\n")[0]).toBe(
    "      31  1970-01-01T00:00:00.000Z  paris/62              build:submitted         job-31",
  );
  const few = stage(50);
  await few.show({ limit: 3 });
  expect(few.shown()).toEqual([48, 49, 50]);
  const many = stage(500);
  await many.show({ limit: 150 });
  expect(many.shown()).toEqual(to(500, 351));
});

it("has no time of an event whose text did not leave its site, and puts the rest where it is on other lines", async () => {
  const { world, show } = stage(3, 0, [], (one) => (one.arrival === 2 ? { ...one, event_type: "withheld" } : one));
  await show({});
  const [first, withheld] = world.out.split("\n");
  expect(withheld).toBe(`       2  ${"-".padEnd(24)}  paris/4               withheld                job-2`);
  expect(withheld!.indexOf("job")).toBe(first!.indexOf("job"));
});

it("shows all that follows an arrival, page after page, and ends there", async () => {
  const { show, shown } = stage(2 * MESH_LOG_PAGE + 7);
  await show({ after: 5 });
  expect(shown()).toEqual(to(2 * MESH_LOG_PAGE + 7, 6));
  const few = stage(500);
  await few.show({ after: 5, limit: MESH_LOG_PAGE + 1 });
  expect(few.shown()).toEqual(to(MESH_LOG_PAGE + 6, 6));
});

it("follows: what arrives is shown once, and a limit ends it", async () => {
  const { show, shown } = stage(3, 0, [2, 0, MESH_LOG_PAGE + 4]);
  await show({ isFollowed: true });
  expect(shown()).toEqual(to(MESH_LOG_PAGE + 9));
  const few = stage(3, 0, [2, 2, 2]);
  await few.show({ isFollowed: true, limit: 5 });
  expect(few.shown()).toEqual(to(5));
});

it("asks with the filters, warns of what is not kept any more, and writes JSON as it came", async () => {
  const { world, show } = stage(20, 10);
  await show({ after: 2, site: "paris", type: "build:submitted", entity: "a b" }, true);
  expect(world.asked[0]).toBe(
    `/v1/mesh/events?limit=${MESH_LOG_PAGE}&after_arrival=2&site=paris&type=build%3Asubmitted&entity=a+b`,
  );
  expect(world.warned).toHaveLength(1);
  expect(JSON.parse(world.out.split("\n")[0]!)).toEqual(event(11));
});
