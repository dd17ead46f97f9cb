import fs from "node:fs";
import path from "node:path";

const HERE = path.join(import.meta.dir, "stand-in");

/** A stand-in for JARVIS-CD: its command line and the modules that a worker asks, with executions that are kept and answered for as JARVIS does. Its pipelines are JSON. */
export class JarvisStandIn {
  readonly program = path.join(HERE, "bin", "jarvis");
  readonly root: string;
  readonly shared: string;

  /** @param directory where it keeps everything */
  constructor(readonly directory: string) {
    this.root = path.join(directory, "root");
    this.shared = path.join(directory, "shared");
  }

  /** As `jarvis init` does. @param sbatch what takes the place of sbatch(1): name, script and output file follow, and it prints the id */
  initialize(sbatch: readonly string[] = []): this {
    for (const one of [this.root, this.shared]) fs.mkdirSync(one, { recursive: true });
    const config = {
      config_dir: path.join(this.directory, "config"),
      private_dir: path.join(this.directory, "private"),
      shared_dir: this.shared,
      repos: [path.join(HERE, "builtin"), path.join(HERE, "demo")],
      sbatch,
    };
    fs.writeFileSync(path.join(this.root, "jarvis_config.json"), JSON.stringify(config));
    return this;
  }

  /** What a worker needs in its environment. */
  get environment(): Record<string, string> {
    return { JARVIS_ROOT: this.root };
  }

  /** A pipeline that it keeps. */
  keep(name: string, pipeline: object): void {
    const directory = path.join(this.directory, "config", "pipelines", name);
    fs.mkdirSync(directory, { recursive: true });
    fs.writeFileSync(path.join(directory, "pipeline.yaml"), JSON.stringify(pipeline));
  }

  /** Ids of the executions of a pipeline. */
  executions(pipeline: string): string[] {
    const directory = path.join(this.shared, pipeline, "executions");
    return fs.existsSync(directory) ? fs.readdirSync(directory) : [];
  }
}

/** The same in an allocation. The stand-in reads JSON, so what the relay puts in has to replace something. */
export const allocatedPipeline = (name: string, settings: object = {}): string =>
  JSON.stringify({ ...JSON.parse(counterPipeline(name, settings)), scheduler: { name: "slurm", job_name: name, no_requeue: false } });

/** The text of a pipeline of counters. */
export const counterPipeline = (name: string, settings: object = {}): string =>
  JSON.stringify({ name, pkgs: [{ pkg_type: "demo.counter", pkg_name: "c1", ...settings }] });
