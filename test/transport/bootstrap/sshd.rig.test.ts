import { afterAll, beforeAll, expect, test } from "bun:test";
import path from "node:path";
import { version } from "../../../package.json";
import { DEFAULT_CAPACITY } from "../../../src/config/cluster-entry.ts";
import { isRelayError } from "../../../src/domain/errors.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { openArtifact } from "../../../src/transport/bootstrap/artifact.ts";
import { type BootstrapOptions, bootstrap } from "../../../src/transport/bootstrap/bootstrap.ts";
import { stopWorker } from "../../../src/transport/bootstrap/worker.ts";
import { remoteOver } from "../../../src/transport/script/remote.ts";
import { authorize, makeKey, makeUser, must, type RigUser, removeUser, startSshd, userFile } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { EXECUTABLE } from "../../runner/relay.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { Desk, noQuestions, Person } from "../ssh/desk.ts";

const signal = new AbortController().signal;
const CHATTY = "echo 'Welcome! Quota: 80% of 10 GB'; printf 'no end of line'\n";

describeWith(["sshd", "ssh", "tcsh"], "bootstrap over one connection to a real sshd", () => {
  const keys = temporaryDirectory();
  const users: RigUser[] = [];
  let key: string;

  beforeAll(() => {
    key = makeKey(keys.path);
  });
  afterAll(() => {
    for (const user of users) removeUser(user);
    keys[Symbol.dispose]();
  });

  function account(shell: string, profile: string): RigUser {
    const user = makeUser({ shell });
    users.push(user);
    authorize(user, `${key}.pub`);
    userFile(user, profile, CHATTY);
    return user;
  }

  const configured = (desk: Desk, user: RigUser, sshd: { host: string; port: number; knownLine(): string }): void => {
    desk.configure("Host login", `  HostName ${sshd.host}`, `  Port ${sshd.port}`, `  User ${user.name}`, `  IdentityFile ${key}`);
    desk.know(sshd.knownLine());
  };
  const options = async (change: Partial<BootstrapOptions> = {}): Promise<BootstrapOptions> => ({
    cluster: "c",
    home: null,
    spool: null,
    artifacts: [await openArtifact(EXECUTABLE)],
    expectedDigest: null,
    version,
    allowDowngrade: false,
    configuration: { env_setup: null, worker_capacity: DEFAULT_CAPACITY, client_keys: [] },
    clock: systemClock,
    signal,
    ...change,
  });

  test.each([
    ["bash", "/bin/bash", ".bashrc"],
    ["tcsh", "/bin/tcsh", ".cshrc"],
  ])("with one channel at a time, a banner, and a chatty profile of %s", async (_, shell, profile) => {
    const user = account(shell, profile);
    const banner = path.join(keys.path, "banner");
    await Bun.write(banner, "*** authorized use only ***\n");
    await using sshd = await startSshd({
      config: ["MaxSessions 1", `Banner ${banner}`, "AllowTcpForwarding no", "AllowStreamLocalForwarding no"],
    });
    using desk = new Desk();
    configured(desk, user, sshd);
    await using link = await desk.connect(new Person(noQuestions));
    const remote = remoteOver(link.session);
    const first = await bootstrap(remote, await options());
    expect(first).toMatchObject({ worker: { state: "started" }, host: { user: user.name, home: user.home, uid: user.uid } });
    const again = await bootstrap(remote, await options());
    expect(again).toMatchObject({ sent_bytes: 0, worker: { state: "kept", pid: first.worker.pid } });
    expect(sshd.connections()).toBe(1);
    expect(await stopWorker(remote, { cluster: "c", home: null, spool: null, signal })).toBe("stopped");
  });

  test("that is cut in the middle of the upload is taken up by the next, where it was", async () => {
    const user = account("/bin/bash", ".bashrc");
    await using sshd = await startSshd();
    using desk = new Desk();
    configured(desk, user, sshd);
    const artifact = await openArtifact(EXECUTABLE);
    {
      await using link = await desk.connect(new Person(noQuestions));
      const cut = bootstrap(
        remoteOver(link.session),
        await options({
          onEvent: (event) => {
            if (event.type === "sent" && event.bytes > artifact.size / 2) sshd.cut();
          },
        }),
      );
      const error: unknown = await cut.catch((thrown: unknown) => thrown);
      expect(isRelayError(error) && error.code).toBe("link_down");
    }
    await using link = await desk.connect(new Person(noQuestions));
    const remote = remoteOver(link.session);
    const done = await bootstrap(remote, await options());
    expect(done.sent_bytes).toBeLessThan(artifact.size * 0.75);
    expect(done.worker.state).toBe("started");
    expect(must("sha256sum", path.join(user.home, ".local/share/clio-relay/current/clio-relay"))).toStartWith(artifact.digest);
    await stopWorker(remote, { cluster: "c", home: null, spool: null, signal });
  });
});
