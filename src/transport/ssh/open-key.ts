import { RelayError } from "../../domain/errors.ts";
import type { Signer } from "../session/authentication.ts";
import { openPrivateKey } from "../session/private-key.ts";
import type { KeyFile } from "./key-file.ts";
import { ask, type Prompter } from "./prompt.ts";

const TRIES = 3;

/**
 * The private key of a file. Its passphrase is asked for, three times at most; an empty answer passes the key over, which gives null.
 *
 * @throws RelayError passphrase_wrong after three wrong ones; local_file_unusable for a file that is no key; what the prompter throws
 */
export async function openKey(file: KeyFile, prompter: Prompter, host: string): Promise<Signer | null> {
  if (!file.encrypted) {
    const key = openPrivateKey(file.text);
    if (key === null) throw new RelayError("local_file_unusable", `${file.path} is no private key that can be used`, { path: file.path });
    return key;
  }
  for (let left = TRIES; left > 0; left--) {
    const again = left === TRIES ? "" : "That does not open it.\n";
    const passphrase = await ask(prompter, { kind: "passphrase", message: `${again}Passphrase of ${file.path}: `, echo: false, host });
    if (passphrase === "") return null;
    const key = openPrivateKey(file.text, passphrase);
    if (key !== null) return key;
  }
  throw new RelayError("passphrase_wrong", `${TRIES} passphrases did not open ${file.path}`, { path: file.path });
}
