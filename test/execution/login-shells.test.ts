import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { type ComponentName, describeWith } from "../runner/components.ts";
import { testAttempts } from "./attempts.ts";

const attempt = testAttempts();
const ARGUMENTS = ["a b", "", "*", 'it\'s "q" $HOME `x`', "new\nline", "!bang", "~", "-n", "back\\slash"];

const SHELLS: readonly { shell: string; needs: ComponentName; profile: string; text: string }[] = [
  { shell: "/bin/sh", needs: "linux", profile: ".profile", text: "export FROM_PROFILE=yes; cd /\n" },
  { shell: "/bin/bash", needs: "linux", profile: ".bash_profile", text: "export FROM_PROFILE=yes; cd /\n" },
  { shell: "/usr/bin/zsh", needs: "zsh", profile: ".zprofile", text: "export FROM_PROFILE=yes; cd /\n" },
  { shell: "/usr/bin/tcsh", needs: "tcsh", profile: ".login", text: "setenv FROM_PROFILE yes; cd /\n" },
  {
    shell: "/usr/bin/fish",
    needs: "fish",
    profile: ".config/fish/config.fish",
    text: "if status is-login; set -x FROM_PROFILE yes; cd /; end\n",
  },
];

for (const { shell, needs, profile, text } of SHELLS) {
  describeWith(needs, `a job through the login shell ${shell}`, () => {
    for (const setup of [null, "export FROM_SETUP=setup; set -- lost; cd /"]) {
      test(`has its profile, its own arguments and directory${setup === null ? "" : ", and the setup text"}`, async () => {
        const program = 'pwd; echo "$FROM_PROFILE $FROM_SETUP"; for word do printf "<%s>" "$word"; done; exit 5';
        const job = attempt(["/bin/sh", "-c", program, "sh", ...ARGUMENTS], { login: true, env_setup: setup });
        const home = path.join(job.root, "a home");
        fs.mkdirSync(path.dirname(path.join(home, profile)), { recursive: true });
        fs.writeFileSync(path.join(home, profile), text);
        const env = { ...(job.json("spec.json")["env"] as Record<string, string>), HOME: home, SHELL: shell };
        fs.writeFileSync(job.file("spec.json"), JSON.stringify({ ...job.json("spec.json"), env }));
        expect((await job.run()).outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 5 });
        const [where, variables, ...words] = job.text("stdout.log").split("\n");
        expect(where).toBe(fs.realpathSync(job.workdir));
        expect(variables).toBe(`yes ${setup === null ? "" : "setup"}`);
        expect(words.join("\n")).toBe(ARGUMENTS.map((word) => `<${word}>`).join(""));
      });
    }
  });
}
