/** A child's output as it comes, for a test that acts on it. */
export class Collected {
  stdout = "";
  stderr = "";
  /** Resolves when both have ended, with the exit code. */
  readonly exited: Promise<number>;

  constructor(child: { stdout: ReadableStream<Uint8Array>; stderr: ReadableStream<Uint8Array>; exited: Promise<number> }) {
    const read = async (stream: ReadableStream<Uint8Array>, add: (text: string) => void) => {
      const decoder = new TextDecoder();
      for await (const bytes of stream as unknown as AsyncIterable<Uint8Array>) add(decoder.decode(bytes, { stream: true }));
    };
    const ended = [read(child.stdout, (text) => (this.stdout += text)), read(child.stderr, (text) => (this.stderr += text))];
    this.exited = Promise.all([child.exited, ...ended]).then(([code]) => code);
  }
}
