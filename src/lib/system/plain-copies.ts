/**
 * Environment of a program of ours through which many bytes go. The C library copies from some kilobytes on with `rep movsb`, which on some processors (AMD's
 * Zen 3) takes ten times as long where the target is not aligned; behind this bound it does not. Read by glibc from 2.32 on when a program starts (GNU C
 * Library manual, Tunables); others take no notice.
 */
export const PLAIN_COPIES: Readonly<Record<string, string>> = { GLIBC_TUNABLES: "glibc.cpu.x86_rep_movsb_threshold=0x40000000" };
