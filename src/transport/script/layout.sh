# expanded PATH: with `~/` as the home directory.
expanded() {
  case $1 in
    [~]/*) printf '%s' "$HOME/${1#??}" ;;
    *) printf '%s' "$1" ;;
  esac
}

# Where an installation lies (docs/connection-model.md, "Bootstrap"). What stands before this: a_home, empty for the usual place.
root=$(expanded "${a_home:-$HOME/.local/share/clio-relay}")
versions=$root/versions
state=$root/bootstrap
launcher=$HOME/.local/bin/clio-relay

# quoted WORD: as a shell reads it back.
quoted() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

# launches: whether the launcher is of this installation: a link into it, or the program that install.sh writes.
launches() {
  case $(readlink "$launcher" 2>/dev/null) in "$root"/*) return 0 ;; esac
  [ -f "$launcher" ] && [ ! -L "$launcher" ] && [ "$(sed '2q' "$launcher" 2>/dev/null | tail -n 1)" = "# clio-relay in $root" ]
}

# near DIRECTORY: it, or the nearest directory above it that is there.
near() {
  near=$1
  while [ ! -d "$near" ]; do
    near=${near%/*}
    [ -n "$near" ] || near=/
  done
  printf '%s' "$near"
}

# free_kib DIRECTORY, free_inodes DIRECTORY
free_kib() { df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print $4 }'; }
free_inodes() { df -Pi "$1" 2>/dev/null | awk 'NR == 2 && $4 ~ /^[0-9]+$/ { print $4 }'; }

# size_of FILE
size_of() { ls -ln "$1" 2>/dev/null | awk 'NR == 1 { print $5 }'; }

# bounded SECONDS COMMAND…: end a command that hangs, where there is a way to.
bounded() {
  if has timeout; then timeout "$@"; else
    shift
    "$@"
  fi
}

# trial SECONDS COMMAND…: the same with the account's own surroundings.
trial() {
  if has timeout; then restored timeout "$@"; else
    shift
    restored "$@"
  fi
}

# digest_of FILE: its SHA-256; nothing where no program can tell.
digest_of() {
  if has sha256sum; then sha256sum <"$1"
  elif has shasum; then shasum -a 256 <"$1"
  elif has openssl; then openssl dgst -sha256 -r <"$1"
  elif has perl; then perl -MDigest::SHA -e 'print Digest::SHA->new(256)->addfile(*STDIN)->hexdigest' <"$1"
  fi | cut -c1-64
}

# running: the digests of versions that are run by a process of this host, or that a batch script names which a scheduler may run, each between blanks.
running() {
  printf ' '
  { ls -l /proc/[0-9]*/exe; cat "$root"/core/*/batch-executables; } 2>/dev/null |
    sed -n 's|.*/versions/\([0-9a-f]\{64\}\)/clio-relay.*|\1|p' | sort -u | tr '\n' ' '
}
