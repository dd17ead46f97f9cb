import { EXIT } from "../domain/errors.ts";
import bash from "./complete/script.bash" with { type: "text" };
import fish from "./complete/script.fish" with { type: "text" };
import zsh from "./complete/script.zsh" with { type: "text" };
import { printJson } from "./print/table.ts";
import { oneOf } from "./values.ts";
import { defineVerb } from "./verb.ts";

/** What each shell reads; the program itself answers what can stand where (complete/main.ts). */
const SCRIPTS = { bash, zsh, fish } as const;

export const verb = defineVerb({
  summary: "Print what a shell needs to complete command lines",
  details:
    "Verbs, options and their values, files, and what there is: clusters by the registry; jobs, tasks, artifacts and keys by the daemon that runs, asked for clusters whose links are up. " +
    "Nothing is started or dialed for it.\n\n" +
    'For good: in bash into ~/.local/share/bash-completion/completions/clio-relay with the package bash-completion, else as `eval "$(clio-relay completion bash)"` in ~/.bashrc; in zsh into a file ' +
    "_clio-relay in a directory of $fpath, or `source <(clio-relay completion zsh)` after compinit; in fish into ~/.config/fish/completions/clio-relay.fish.",
  positionals: {
    shell: { ...oneOf("bash", "zsh", "fish"), whenMissing: "clio-relay completion --help says where each shell looks for it" },
  },
  flags: {},
  examples: [
    ["completion bash > ~/.local/share/bash-completion/completions/clio-relay", "for bash, with the package bash-completion"],
    ["completion fish > ~/.config/fish/completions/clio-relay.fish", "for fish"],
  ],
  async run({ args, io, json }) {
    const script = SCRIPTS[args.shell];
    if (json) await printJson(io.stdout, { shell: args.shell, script });
    else await io.stdout.write(script);
    return EXIT.ok;
  },
});
