/**
 * A fresh identifier: the prefix, `_` and the 32 hexadecimal digits of a UUID version 7 (RFC 9562, section 5.7). It begins with the time, so that
 * records that are made together lie together in an index; 74 bits are random.
 */
export const newId = (prefix: string): string => `${prefix}_${Bun.randomUUIDv7().replaceAll("-", "")}`;
