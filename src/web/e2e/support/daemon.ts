/**
 * The real daemon on a free port, with a new data directory, and real host agents.
 *
 * `GRANARY_BIN` is the folder of the binaries; the default is cargo's debug build.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ChartAnswer, Tags } from "../../src/api/types";
import { eventually } from "./eventually";

const BINARIES =
  process.env["GRANARY_BIN"] ?? join(import.meta.dirname, "../../../../target/debug");
/** A directory in memory if possible: the tests are about the page, not the disk. */
const SCRATCH = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/**
 * The default granularities, each with a retention that reaches beyond the last change of clocks of
 * any zone; no preallocation, which would create many shells.
 */
const SETTINGS = [
  "[preallocation]\nenabled = false\n",
  ...[
    ["1m", "1h", "6h", "48h"],
    ["5m", "4h", "1d", "400d"],
    ["1h", "1d", "1w", "60w"],
    ["1d", "1mo", "1y", "5y"],
  ].map(
    ([slot, document, partition, retention]) =>
      `[[granularity]]\nslot = '${slot}'\ndocument = '${document}'\n` +
      `partition = '${partition}'\nretention = '${retention}'\n`,
  ),
].join("\n");

/** Texts of files next to the daemon's settings. */
export interface Files {
  "rules.yml": string;
  "receivers.yml"?: string;
  /** Additional settings. */
  "granary.toml"?: string;
}

/** A sample as clients post it. */
export interface Sample {
  metric: string;
  tags: Tags;
  kind?: "gauge" | "counter" | "delta";
  unit?: string;
  time: number;
  value: number;
}

export interface Ping {
  agent: string;
  host?: string;
  program: string;
  version: string;
  started: number;
  booted?: number;
  interval_ms: number;
  sent: number;
  tags?: Tags;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port is free");
  return address.port;
}

export class Daemon {
  private child: ChildProcess | undefined;
  private agents: ChildProcess[] = [];
  private batches = 0;
  /** The key of this object's requests; empty without one. */
  key = "";
  private readonly batchEpoch = Date.now();

  private constructor(
    readonly folder: string,
    readonly url: string,
  ) {}

  static async start(files: Files): Promise<Daemon> {
    const folder = await mkdtemp(join(SCRATCH, "granary-page-"));
    for (const [name, text] of Object.entries<string>({ ...files }))
      await writeFile(join(folder, name), text);
    const alertLines = [`[alerts]`, `rules = ['${join(folder, "rules.yml")}']`];
    if (files["receivers.yml"])
      alertLines.push(`notifications = '${join(folder, "receivers.yml")}'`);
    await writeFile(
      join(folder, "granary.toml"),
      `${alertLines.join("\n")}\n${files["granary.toml"] ?? ""}${SETTINGS}`,
    );
    const daemon = new Daemon(folder, `http://127.0.0.1:${await freePort()}`);
    await daemon.run();
    return daemon;
  }

  /** Starts the process on the same data and port, and waits until it is ready. */
  async run(): Promise<void> {
    const log = await open(join(this.folder, "log"), "a");
    const args = ["serve", "--data-dir", join(this.folder, "data")];
    args.push("--listen", this.url.replace("http://", ""));
    args.push("--config", join(this.folder, "granary.toml"));
    const child = spawn(join(BINARIES, "granary"), args, { stdio: ["ignore", "ignore", log.fd] });
    await log.close();
    this.child = child;
    await eventually("the daemon is ready", async () => {
      if (child.exitCode !== null) throw new Error(`the daemon ended: ${await this.log()}`);
      return fetch(`${this.url}/readyz`).then(
        (answer) => answer.ok,
        () => false,
      );
    });
  }

  log(): Promise<string> {
    return readFile(join(this.folder, "log"), "utf8");
  }

  /** Kills the process with SIGKILL. */
  async kill(): Promise<void> {
    const child = this.child;
    this.child = undefined;
    if (!child || child.exitCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  /** Stops the process: it answers nothing until it is resumed. */
  pause(): void {
    this.child?.kill("SIGSTOP");
  }

  resume(): void {
    this.child?.kill("SIGCONT");
  }

  /** Kills the daemon and its agents, and removes the data. */
  async remove(): Promise<void> {
    for (const agent of this.agents) agent.kill("SIGKILL");
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
  }

  /**
   * Starts a real agent of this machine, which samples each second; returns once the daemon
   * received a ping.
   */
  async sampleThisMachine(agent: string): Promise<void> {
    const args = ["--url", this.url, "--agent-id", agent, "--interval", "1s"];
    args.push("--spool-dir", join(this.folder, `spool-${agent}`));
    const child = spawn(join(BINARIES, "granary-agent-host"), args, { stdio: "ignore" });
    this.agents.push(child);
    await eventually(`the daemon received samples of ${agent}`, async () => {
      if (child.exitCode !== null) throw new Error("the agent ended");
      const answer = await fetch(`${this.url}/api/v1/series?tags=host=${agent}`);
      return ((await answer.json()) as { total: number }).total > 0;
    });
  }

  /** Sends a fleet of `granary-bench`; returns when all rounds are sent. */
  async runBench(...args: string[]): Promise<void> {
    const child = spawn(join(BINARIES, "granary-bench"), ["--url", this.url, ...args], {
      stdio: "ignore",
    });
    const [code] = (await once(child, "exit")) as [number | null];
    if (code !== 0) throw new Error(`granary-bench ${args.join(" ")}: ${code ?? "was killed"}`);
  }

  async request(path: string, init?: RequestInit): Promise<unknown> {
    const headers = new Headers(init?.headers);
    if (this.key !== "") headers.set("authorization", `Bearer ${this.key}`);
    const answer = await fetch(this.url + path, { ...init, headers });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  post(path: string, body: unknown, method = "POST"): Promise<unknown> {
    return this.request(path, {
      method,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  }

  chart(params: Record<string, string>): Promise<ChartAnswer> {
    const search = new URLSearchParams(params).toString();
    return this.request(`/api/v1/chart?${search}`) as Promise<ChartAnswer>;
  }

  /** Posts samples; the daemon must accept all of them. */
  async postSamples(samples: Sample[]): Promise<void> {
    for (let from = 0; from < samples.length; from += 20_000) {
      const part = samples.slice(from, from + 20_000);
      this.batches += 1;
      const batch = {
        agent: "page-tests",
        epoch: this.batchEpoch,
        seq: this.batches,
        samples: part,
      };
      const answer = (await this.post("/api/v1/ingest", batch)) as { accepted: number };
      if (answer.accepted !== part.length) {
        throw new Error(`of ${part.length} samples: ${JSON.stringify(answer)}`);
      }
    }
  }

  /** Posts pings; the daemon must accept all of them. */
  async postPings(pings: Ping[]): Promise<void> {
    for (let from = 0; from < pings.length; from += 1000) {
      const part = pings.slice(from, from + 1000);
      const answer = (await this.post("/api/v1/ping", { pings: part })) as { accepted: number };
      if (answer.accepted !== part.length) {
        throw new Error(`of ${part.length} pings: ${JSON.stringify(answer)}`);
      }
    }
  }
}
