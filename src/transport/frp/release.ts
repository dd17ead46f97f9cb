/** The release of frp that this version works with. */
export const FRP_VERSION = "0.69.1";

/** SHA-256 of the files of a release for a kind of machine. */
export interface PinnedRelease {
  readonly archive: string;
  readonly sha256: string;
  readonly frpc: string;
  readonly frps: string;
}

const RELEASES = `https://github.com/fatedier/frp/releases/download/v${FRP_VERSION}`;
export const releaseUrl = ({ archive }: PinnedRelease): string => `${RELEASES}/${archive}`;

/** By the kind of machine, as frp names it. */
export const PINNED: Readonly<Record<string, PinnedRelease>> = {
  linux_amd64: {
    archive: `frp_${FRP_VERSION}_linux_amd64.tar.gz`,
    sha256: "7be257b72dbbc60bcb3e0e25a5afd1dfac7b63f897084864d3c956dd3d5674e1",
    frpc: "142f447f43fef286acc8da8a6852dda80631db631d604b2e63634b2db4d6848c",
    frps: "68d2908bb73fe7a03c29d9227d2acc2104bff3fea6b1cece0b8388c1a0660442",
  },
  windows_amd64: {
    archive: `frp_${FRP_VERSION}_windows_amd64.zip`,
    sha256: "829ac915f8655d4d4e021b8db61b46c3445205ed80d32b04cda7fa89d87c46e0",
    frpc: "1d1c4f988b1808bb458a4ba38f00359052d14636023a504520e0afed127d636d",
    frps: "bd463ef89370abc6973c86258256fa65776baa5f515ef91ebeabd6070b92e229",
  },
};
