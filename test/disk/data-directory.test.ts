import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openDataDirectory, systemIo } from "../../src/drivers/disk/index.ts";
import { newPath, openAt, pattern } from "./test-directory.ts";

const HOLDER = new URL("./test-holder.ts", import.meta.url).pathname;

describe("a data directory", () => {
  test("is made where it is missing, for its owner alone", async () => {
    const path = join(await newPath(), "deep", "data");
    const { disk } = await openAt(path);
    expect((await stat(path)).mode & 0o777).toBe(0o700);
    expect(await disk.list("list")).toEqual([]);
    const file = await disk.create("a", "create");
    await file.close();
    expect((await stat(join(path, "a"))).mode & 0o777).toBe(0o600);
  });

  test("and every directory above it that had to be made are durable before it is used", async () => {
    const path = await newPath();
    const opened = new Map<number, string>();
    const synced: string[] = [];
    const io: typeof systemIo = {
      ...systemIo,
      open: async (name, flags, mode) => {
        const fd = await systemIo.open(name, flags, mode);
        opened.set(fd, name);
        return fd;
      },
      fsync: async (fd, label) => {
        synced.push(opened.get(fd)!);
        await systemIo.fsync(fd, label);
      },
    };
    await openAt(join(path, "deep", "data"), { io });
    expect(synced).toEqual([join(path, "deep"), path]);
  });

  test("lists, renames and removes plain names, and refuses any other", async () => {
    const path = await newPath();
    const { disk } = await openAt(path);
    for (const name of ["a", "b"]) await (await disk.create(name, "create")).close();
    await disk.rename("a", "c", "rename");
    await disk.remove("b", "remove");
    await disk.syncDirectory("sync-directory");
    expect(await disk.list("list")).toEqual(["c"]);
    for (const name of ["../a", "a/b", "", ".", "..", ".hidden", "lock", "holder", "a\0"]) {
      await expect(disk.create(name, "create")).rejects.toThrow("plain name");
      await expect(disk.read(name, "read")).rejects.toThrow("plain name");
    }
    await expect(disk.read("missing", "read")).rejects.toThrow("ENOENT");
    await expect(disk.open("missing", "open")).rejects.toThrow("ENOENT");
  });

  test("that is a file, or below one, is refused", async () => {
    const path = join(await newPath(), "file");
    await writeFile(path, "");
    for (const wrong of [path, join(path, "below")]) {
      await expect(openDataDirectory(wrong)).rejects.toMatchObject({
        code: "CONFIG_INVALID",
        message: expect.stringContaining(`${wrong} is not a directory`),
      });
    }
  });

  test("below one that can't hold files (/proc), or that one itself, is refused at once", async () => {
    for (const wrong of ["/proc/tenure", "/proc/tenure/data", "/proc"]) {
      await expect(openDataDirectory(wrong)).rejects.toMatchObject({
        code: "CONFIG_INVALID",
        message: expect.stringMatching(`^${wrong} can't be used as a data directory: .* Choose another one\\.$`),
      });
    }
  });

  test.each(["EACCES", "EROFS"])("that may not be written (%s) is refused, and says what to do", async (code) => {
    const denied = Object.assign(new Error(`${code}: denied`), { code });
    const io = { ...systemIo, checkAccess: () => Promise.reject(denied) };
    await expect(openDataDirectory(await newPath(), { io })).rejects.toMatchObject({
      code: "PERMISSION_DENIED",
      message: expect.stringContaining("Let this user read and write it"),
    });
  });

  test("does nothing more once it is closed, and drops what was never synced", async () => {
    const path = await newPath();
    const directory = await openAt(path);
    const { disk } = directory;
    const file = await disk.create("a", "create");
    await file.append(pattern(10), "append");
    await directory.close();
    await directory.close();
    await expect(file.append(pattern(1), "append")).rejects.toThrow("closed");
    await expect(disk.create("b", "create")).rejects.toThrow("closed");
    await expect(disk.syncDirectory("sync")).rejects.toThrow("closed");
    expect((await stat(join(path, "a"))).size).toBe(0);
  });
});

describe("the lock", () => {
  test("refuses a second opener in the same process, also by another path", async () => {
    const path = await newPath();
    const link = join(await newPath(), "link");
    await symlink(path, link);
    const first = await openAt(path);
    for (const way of [path, link]) {
      await expect(openDataDirectory(way)).rejects.toMatchObject({
        code: "DATA_DIRECTORY_IN_USE",
        message: expect.stringContaining("by this process"),
      });
    }
    // The refused ones have not taken the first one's lock with them.
    await expect(openDataDirectory(path)).rejects.toMatchObject({ code: "DATA_DIRECTORY_IN_USE" });
    await first.close();
    await (await openAt(path)).close();
  });

  test("refuses another process and names the holder; kill -9 of the holder frees it", async () => {
    const path = await newPath();
    const holder = spawn(process.execPath, [HOLDER, path], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      await once(holder.stdout, "data");
      await expect(openDataDirectory(path)).rejects.toMatchObject({
        code: "DATA_DIRECTORY_IN_USE",
        message: expect.stringContaining(`${path} is in use by process ${holder.pid}`),
      });
    } finally {
      holder.kill("SIGKILL");
      await once(holder, "exit");
    }
    await (await openAt(path)).close();
  });

  test("speaks of another server where the holder is not known", async () => {
    const path = await newPath();
    await openAt(path);
    await rm(join(path, "holder"));
    await expect(openDataDirectory(path)).rejects.toThrow("in use by another server");
  });

  test("is taken also where the holder's pid can't be written, as on a full disk", async () => {
    const path = await newPath();
    await mkdir(join(path, "holder"));
    const first = await openAt(path);
    await expect(openDataDirectory(path)).rejects.toThrow("in use by another server");
    await first.close();
    await (await openAt(path)).close();
  });

  test("that can't be taken for another reason says which file to look at", async () => {
    const path = await newPath();
    await mkdir(join(path, "lock"));
    await expect(openDataDirectory(path)).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.stringContaining(`${join(path, "lock")} can't be locked`),
    });
  });

  test("is let go of where opening fails behind it", async () => {
    const path = await newPath();
    const io: typeof systemIo = {
      ...systemIo,
      open: () => Promise.reject(new Error("EMFILE: too many open files")),
    };
    await expect(openDataDirectory(path, { io })).rejects.toThrow("EMFILE");
    await (await openAt(path)).close();
  });
});
