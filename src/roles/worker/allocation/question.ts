/** Something that is asked in the background, one at a time, so that a look at an attempt never waits for a scheduler. */
export class Question<T> {
  #asked = false;
  #answer: { readonly value: T } | { readonly failure: unknown } | null = null;

  /** @param onAnswer told when there is something to take */
  constructor(private readonly onAnswer: () => void) {}

  /** Whether it was asked and its answer was not taken yet. */
  get open(): boolean {
    return this.#asked;
  }

  /** Ask; nothing where it is open. */
  ask(question: () => Promise<T>): void {
    if (this.#asked) return;
    this.#asked = true;
    void question()
      .then(
        (value) => {
          this.#answer = { value };
        },
        (failure: unknown) => {
          this.#answer = { failure };
        },
      )
      .finally(() => this.onAnswer());
  }

  /** The answer, once; undefined where there is none yet. @throws what the question failed with */
  take(): T | undefined {
    const answer = this.#answer;
    if (answer === null) return undefined;
    this.#answer = null;
    this.#asked = false;
    if ("failure" in answer) throw answer.failure;
    return answer.value;
  }
}
