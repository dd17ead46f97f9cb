/** A fresh identifier: the prefix, `_` and 32 random hexadecimal digits. */
export const newId = (prefix: string): string => `${prefix}_${crypto.randomUUID().replaceAll("-", "")}`;
