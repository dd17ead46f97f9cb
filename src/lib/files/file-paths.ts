/** Paths of files, with `/` between their parts, that can lie below one directory together: none has another's place, or lies below it. */
export class FilePaths {
  readonly #files = new Set<string>();
  readonly #directories = new Set<string>();

  /** @param folded makes one of paths that are to count as the same */
  constructor(private readonly folded: (path: string) => string = (path) => path) {}

  /** Take a path, unless another file is in its way. */
  take(path: string): boolean {
    const place = this.folded(path);
    const above = directoriesOf(place);
    if (this.#files.has(place) || this.#directories.has(place) || above.some((directory) => this.#files.has(directory))) return false;
    this.#files.add(place);
    for (const directory of above) this.#directories.add(directory);
    return true;
  }
}

const directoriesOf = (path: string): string[] => {
  const parts = path.split("/");
  return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join("/"));
};
