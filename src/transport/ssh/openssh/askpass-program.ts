import net from "node:net";

const MAX_BYTES = 64 * 1024;

/**
 * What ssh runs to ask the person (ssh(1), SSH_ASKPASS): hands the question to the process that holds the connection and prints the answer.
 *
 * @param argv the socket; SSH_ASKPASS_PROMPT, empty where it is not set; the question
 * @returns the exit code: 0 with an answer, 1 without
 */
export async function runAskpass(argv: readonly string[]): Promise<number> {
  const [socket, hint = "", prompt = ""] = argv;
  if (socket === undefined) return 1;
  const reply = await exchange(socket, `${JSON.stringify({ prompt, hint })}\n`);
  const answer: unknown = reply === null ? null : (JSON.parse(reply) as { answer: unknown }).answer;
  if (typeof answer !== "string") return 1;
  await Bun.write(Bun.stdout, `${answer}\n`);
  return 0;
}

/** One line there and one line back; null when the other side ends without one. */
function exchange(path: string, line: string): Promise<string | null> {
  return new Promise((resolve) => {
    const connection = net.connect({ path });
    let text = "";
    connection.setEncoding("utf8");
    connection.on("connect", () => connection.write(line));
    connection.on("data", (chunk: string) => {
      text += chunk;
      if (!text.includes("\n") && text.length <= MAX_BYTES) return;
      connection.destroy();
      resolve(text.includes("\n") ? text.slice(0, text.indexOf("\n")) : null);
    });
    connection.on("error", () => resolve(null));
    connection.on("close", () => resolve(null));
  });
}
