/** The release of frp that this version works with. */
export const FRP_VERSION = "0.69.1";

/** SHA-256 of the files of a release for a kind of machine; see docs/adr/0012. */
export interface PinnedRelease {
  readonly archive: string;
  /** Null: not known. The programs in it have to have theirs, which a build of the source has, too. */
  readonly archive_sha256: string | null;
  readonly frpc: string;
  readonly frps: string;
}

const RELEASES = `https://github.com/fatedier/frp/releases/download/v${FRP_VERSION}`;
export const releaseUrl = ({ archive }: PinnedRelease): string => `${RELEASES}/${archive}`;

/** By the kind of machine, as frp names it. */
export const PINNED: Readonly<Record<string, PinnedRelease>> = {
  linux_amd64: {
    archive: `frp_${FRP_VERSION}_linux_amd64.tar.gz`,
    archive_sha256: "7be257b72dbbc60bcb3e0e25a5afd1dfac7b63f897084864d3c956dd3d5674e1",
    frpc: "142f447f43fef286acc8da8a6852dda80631db631d604b2e63634b2db4d6848c",
    frps: "68d2908bb73fe7a03c29d9227d2acc2104bff3fea6b1cece0b8388c1a0660442",
  },
  windows_amd64: {
    archive: `frp_${FRP_VERSION}_windows_amd64.zip`,
    archive_sha256: "829ac915f8655d4d4e021b8db61b46c3445205ed80d32b04cda7fa89d87c46e0",
    frpc: "1d1c4f988b1808bb458a4ba38f00359052d14636023a504520e0afed127d636d",
    frps: "bd463ef89370abc6973c86258256fa65776baa5f515ef91ebeabd6070b92e229",
  },
  linux_arm64: {
    archive: `frp_${FRP_VERSION}_linux_arm64.tar.gz`,
    archive_sha256: null,
    frpc: "f93e758ea21099a8ac6b65791d1113e86ccb06bab03cc41575613726e375322d",
    frps: "8dcdaacb82c76fea5611606e132625c75f986eb932c797d11324905009cb19b2",
  },
  darwin_arm64: {
    archive: `frp_${FRP_VERSION}_darwin_arm64.tar.gz`,
    archive_sha256: null,
    frpc: "cce36cc111bd7b9787f4b5ef06859fc19ec94e74105649127949f70f3d562eb4",
    frps: "0675aef719fa4c355e680efcad6ae54f1e5cfdf97a4bef080e4564329df001af",
  },
  darwin_amd64: {
    archive: `frp_${FRP_VERSION}_darwin_amd64.tar.gz`,
    archive_sha256: null,
    frpc: "b8c1bcea96211a12d4ae6d5d07edcc0dc8d6378908ed9e298d66f371be3d6967",
    frps: "88f4f9f4efe9ac2083e9f3279178fcd1b2028a7300e8b99ef3997773bfe31681",
  },
};
