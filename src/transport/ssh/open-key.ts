import { RelayError } from "../../domain/errors.ts";
import type { Signer } from "../session/authentication.ts";
import { openPrivateKey } from "../session/private-key.ts";
import type { KeyFile } from "./key-file.ts";
import { ask, type Prompter } from "./prompt.ts";

const TRIES = 3;

/** Keys that were opened, by path; a file that has another text by now is opened anew. */
export type KeyRing = Map<string, { readonly text: string; readonly key: Signer }>;

export interface KeyOpening {
  readonly prompter: Prompter;
  readonly keyRing: KeyRing;
}

/**
 * The private key of a file. Its passphrase is asked for, three times at most; an empty answer passes the key over, which gives null. One that was opened is
 * remembered in the ring.
 *
 * @throws RelayError passphrase_wrong after three wrong ones; local_file_unusable for a file that is no key; what the prompter throws
 */
export async function openKey(file: KeyFile, { prompter, keyRing }: KeyOpening, host: string): Promise<Signer | null> {
  if (!file.encrypted) {
    const key = openPrivateKey(file.text);
    if (key === null) throw new RelayError("local_file_unusable", `${file.path} is no private key that can be used`, { path: file.path });
    return key;
  }
  const known = keyRing.get(file.path);
  if (known?.text === file.text) return known.key;
  for (let left = TRIES; left > 0; left--) {
    const again = left === TRIES ? "" : "That does not open it.\n";
    const passphrase = await ask(prompter, { kind: "passphrase", message: `${again}Passphrase of ${file.path}: `, echo: false, host });
    if (passphrase === "") return null;
    const key = openPrivateKey(file.text, passphrase);
    if (key !== null) {
      keyRing.set(file.path, { text: file.text, key });
      return key;
    }
  }
  throw new RelayError("passphrase_wrong", `${TRIES} passphrases did not open ${file.path}`, { path: file.path });
}
