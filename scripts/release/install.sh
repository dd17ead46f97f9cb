#!/bin/sh
# Installs clio-relay for the user who runs this: an executable below ~/.local, nothing else. POSIX sh; needs curl or wget, and a program that knows
# SHA-256. Everything is in functions, and nothing happens before the last line has been read: a download that was cut does nothing.
#
#   sh install.sh [--version VERSION] [--prefix DIR] [--sha256 DIGEST] [--dry-run]
#   sh install.sh --uninstall [--prefix DIR]

# Filled in when a release is made.
RELEASED_VERSION=''
RELEASES_URL=''

usage() {
  cat <<'USAGE'
Usage: sh install.sh [OPTIONS]

  --version VERSION   install this version; that of this installer when left out
  --prefix DIR        install below DIR; ~/.local when left out
  --sha256 DIGEST     install only an executable with this SHA-256
  --dry-run           say what would be done; change nothing
  --uninstall         remove what was installed; say what remains
  --help              this text

Environment:
  CLIO_RELAY_BASE_URL      a mirror: where SHA256SUMS and the executables lie
  CLIO_RELAY_OFFLINE_DIR   a directory that has them; nothing is downloaded
  CLIO_RELAY_VERSION, CLIO_RELAY_PREFIX, CLIO_RELAY_SHA256   as the options
  CLIO_RELAY_ALLOW_ROOT=1  install for root although sudo is in play
  https_proxy, no_proxy, SSL_CERT_FILE …   as curl and wget know them
USAGE
}

# fail MESSAGE [HINT]: say why, and what to do, and end.
fail() {
  printf 'install.sh: error: %s\n' "$1" >&2
  if [ -n "${2-}" ]; then printf 'install.sh: hint: %s\n' "$2" >&2; fi
  exit 1
}

# note MESSAGE: for people, besides the result.
note() { printf '%s\n' "$1" >&2; }

# has PROGRAM
has() { command -v "$1" >/dev/null 2>&1; }

# What the parts below need. `say` reports to whoever called them, one line each.
say() { printf '%s %s\n' "$1" "$(printf '%s' "${2-}" | tr '\n' ' ')"; }
refuse() {
  say refused "$1"
  say detail "$2"
  exit 1
}
restored() { "$@"; }

# @include src/transport/script/layout.sh
# @include src/transport/script/lock.sh
# @include src/transport/bootstrap/prepare.sh
# @include src/transport/bootstrap/install.sh
# @include src/transport/bootstrap/uninstall.sh

# value NAME: what the last report says of it.
value() { printf '%s\n' "$report" | sed -n "s/^$1 //p" | sed -n '$p'; }

# carry_out FUNCTION: run it; its report is in `report`. Ends with what it refused.
carry_out() {
  report=$("$1") && return
  detail=$(value detail)
  case $(value refused) in
    unwritable) fail "cannot write: $detail" "choose another place: --prefix DIR" ;;
    foreign) fail "$detail" ;;
    busy) fail "another installation is under way: $detail" "try again when it is done" ;;
    no_digest_program) fail "$detail" "install one of them; nothing is installed that was not verified" ;;
    queue_newer) fail "that version cannot read a queue that is here: $detail" "take a newer version; without what came since the queue was made newer: stop its worker, and put queue.db.vN.bak, which lies beside it, in its place" ;;
    digest_differs) fail "what was downloaded has SHA-256 $detail, not $a_digest" "$retry" ;;
    in_use) fail "a worker has its record in $detail" "stop it first: clio-relay worker stop, clio-relay cluster uninstall" ;;
    does_not_start) does_not_start "$detail" ;;
    *) fail "the installation did not come to its end: $(value refused) $detail" "run it again; what is there stays as it is" ;;
  esac
}

does_not_start() {
  what="$file does not start here: ${1:-it said nothing}"
  rm -rf "${versions:?}/$a_digest"
  case $(value trial_exit):$file in
    126:*) fail "$what" "the file system of $root may forbid execution (mount option noexec): choose another place with --prefix DIR" ;;
    *-musl) fail "$what" "it needs the C++ library: apk add libstdc++ (Alpine), or what your system calls it" ;;
    127:*) fail "$what" "the C library's loader is not where programs look for it (NixOS: nix-ld)" ;;
    *) fail "$what" ;;
  esac
}

options() {
  version=${CLIO_RELAY_VERSION-}
  prefix=${CLIO_RELAY_PREFIX-}
  pinned=${CLIO_RELAY_SHA256-}
  base=${CLIO_RELAY_BASE_URL-}
  offline=${CLIO_RELAY_OFFLINE_DIR-}
  dry=no
  action=install
  while [ $# -gt 0 ]; do
    case $1 in
      --version | --prefix | --sha256)
        if [ $# -lt 2 ] || [ -z "$2" ]; then fail "$1 needs a value"; fi
        option=$1 given=$2
        shift 2
        ;;
      --version=* | --prefix=* | --sha256=*)
        option=${1%%=*} given=${1#*=}
        shift
        ;;
      --dry-run) dry=yes && shift && continue ;;
      --uninstall) action=uninstall && shift && continue ;;
      --help | -h) usage && exit 0 ;;
      *) fail "there is no option $1" "sh install.sh --help" ;;
    esac
    case $option in
      --version) version=${given#v} ;;
      --prefix) prefix=$given ;;
      --sha256) pinned=$given ;;
    esac
  done
  case $version in *[!0-9A-Za-z.+-]*) fail "$version is no version" ;; esac
  if [ -n "$pinned" ]; then is_digest "$pinned" || fail "$pinned is no SHA-256: 64 hexadecimal digits in lower case"; fi
}

is_digest() {
  case $1 in *[!0-9a-f]*) return 1 ;; esac
  [ ${#1} -eq 64 ]
}

# One user's installation, by that user.
refuse_sudo() {
  [ "$(id -u)" -eq 0 ] || return 0
  invoker=${SUDO_USER:-${DOAS_USER:-${PKEXEC_UID-}}}
  if [ -n "$invoker" ] && [ "${CLIO_RELAY_ALLOW_ROOT-}" != 1 ]; then
    fail "this installs for one user and needs no root: run it as $invoker, without sudo" "where it is really root who will use it (a container): CLIO_RELAY_ALLOW_ROOT=1"
  fi
}

places() {
  if [ -z "$prefix" ]; then
    case ${HOME-} in
      /*) prefix=$HOME/.local ;;
      *) fail "HOME is not set to a directory" "name a place: --prefix DIR" ;;
    esac
  fi
  case $prefix in
    /*) ;;
    *) prefix=$(pwd)/$prefix ;;
  esac
  prefix=${prefix%/}
  root=$prefix/share/clio-relay
  versions=$root/versions
  state=$root/bootstrap
  launcher=$prefix/bin/clio-relay
}

platform() {
  os=$(uname -s) machine=$(uname -m) libc='' cpu=''
  case $os in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    MINGW* | MSYS* | CYGWIN* | Windows*)
      fail "this installer is for Linux and macOS" "download clio-relay-windows-x64.exe, compare it with SHA256SUMS, and put it on PATH"
      ;;
    *) fail "there is no build for $os" ;;
  esac
  case $machine in
    x86_64 | amd64) arch=x64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "there is no build for processors of kind $machine" ;;
  esac
  # Rosetta calls an arm64 machine x86_64.
  if [ "$os:$arch:$(sysctl -n sysctl.proc_translated 2>/dev/null)" = darwin:x64:1 ]; then arch=arm64; fi
  if [ "$os" = linux ]; then
    if [ "$(getconf LONG_BIT 2>/dev/null)" = 32 ]; then fail "the programs of this system have 32 bits; there is a build for 64 only"; fi
    libc
    if [ "$arch" = x64 ]; then processor; fi
  fi
  file=clio-relay-$os-$arch$libc$cpu
}

# `-musl`, or nothing for a GNU C library that is new enough.
libc() {
  glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null)
  glibc=${glibc#glibc }
  if [ -z "$glibc" ]; then
    case $(ldd --version 2>&1) in *musl*) libc=-musl && return ;; esac
    for loader in /lib/ld-musl-*.so.1; do
      if [ -e "$loader" ]; then libc=-musl && return; fi
    done
    fail "this system has neither the GNU C library nor musl, as far as getconf and ldd tell"
  fi
  minor=${glibc#*.}
  minor=${minor%%[!0-9]*}
  if [ "${glibc%%.*}" -lt 2 ] || { [ "${glibc%%.*}" -eq 2 ] && [ "${minor:-0}" -lt 17 ]; }; then
    fail "the GNU C library here is version $glibc; 2.17 is the oldest that will do"
  fi
}

# `-baseline` for a processor without AVX2. None that has no SSE 4.2 will do.
processor() {
  flags=" $(sed -n '/^flags/{p;q;}' /proc/cpuinfo 2>/dev/null) "
  case $flags in
    '  ') ;;
    *' avx2 '*) ;;
    *' sse4_2 '*) if [ -z "$libc" ]; then cpu=-baseline; fi ;;
    *) fail "this processor lacks SSE 4.2, which every build for x64 needs" ;;
  esac
}

# Where the files come from: a directory, or an address that says so by itself or is safe on the way.
source_of_files() {
  retry='try again; it may have been changed on its way or while it was published'
  if [ -n "$offline" ]; then
    [ -d "$offline" ] || fail "CLIO_RELAY_OFFLINE_DIR: there is no directory $offline"
    return
  fi
  if [ -z "$base" ]; then
    wanted=${version:-$RELEASED_VERSION}
    if [ -z "$RELEASES_URL" ]; then
      fail "this installer was made without the address of its release" "set CLIO_RELAY_BASE_URL to where SHA256SUMS lies, or CLIO_RELAY_OFFLINE_DIR to a directory"
    fi
    base=$RELEASES_URL/download/v$wanted
  fi
  base=${base%/}
  authority=${base#*://}
  case ${authority%%/*} in
    *@*) fail "CLIO_RELAY_BASE_URL holds a user name; everybody here could read it in the list of processes" "fetch the files in another way and set CLIO_RELAY_OFFLINE_DIR" ;;
  esac
  case $base in
    https://?*) protocols='=https' ;;
    http://127.0.0.1[:/]* | http://localhost[:/]*) protocols='=http,https' ;;
    http://?*)
      [ -n "$pinned" ] || fail "what comes by http can be changed on its way" "use https, or say which executable you want: --sha256 DIGEST"
      protocols='=http,https'
      ;;
    *) fail "$base is no address of the form https://HOST/…" ;;
  esac
  has curl || has wget || fail "neither curl nor wget is there" "install one, or set CLIO_RELAY_OFFLINE_DIR to a directory that has the files"
}

# fetch NAME FILE MEBIBYTES: whole, or not at all. Whatever is larger than that is cut off.
fetch() {
  if [ -n "$offline" ]; then
    [ -f "$offline/$1" ] || fail "there is no $1 in $offline"
    said=$(cp "$offline/$1" "$2" 2>&1) || fail "$1 could not be copied: $said"
    return
  fi
  if said=$( (ulimit -f $(($3 * 2048)) 2>/dev/null && download "$base/$1" "$2") 3>&2 2>&1); then return; fi
  rm -f "$2"
  fail "$base/$1 could not be downloaded: $(printf '%s' "$said" | tr '\n' ' ')" "behind a proxy set https_proxy; without a way to the network set CLIO_RELAY_OFFLINE_DIR"
}

# download URL FILE: progress goes to descriptor 3 where that is a terminal.
download() {
  if has curl; then
    if [ -t 3 ]; then
      curl -# -fL --proto "$protocols" --connect-timeout 30 --speed-limit 1 --speed-time 60 --retry 2 -o "$2" "$1" 2>&3
    else
      curl -sS -fL --proto "$protocols" --connect-timeout 30 --speed-limit 1 --speed-time 60 --retry 2 -o "$2" "$1"
    fi
    return
  fi
  case $(wget --help 2>&1) in
    # It waits for 15 minutes at most; told to wait less (-T), version 1.35 crashes.
    *BusyBox*) wget -q -O "$2" "$1" ;;
    *) wget -nv -t 3 -T 60 -O "$2" "$1" 2>&1 ;;
  esac
}

# The digest that SHA256SUMS gives for the file.
expected_digest() {
  fetch SHA256SUMS "$scratch/SHA256SUMS" 1
  a_digest=$(awk -v name="$file" '$2 == name || $2 == "*" name { print $1 }' "$scratch/SHA256SUMS")
  if [ -z "$a_digest" ]; then fail "SHA256SUMS does not name $file" "that release has no build for this system"; fi
  is_digest "$a_digest" || fail "SHA256SUMS gives no usable digest for $file" "$retry"
  if [ -n "$pinned" ] && [ "$pinned" != "$a_digest" ]; then fail "SHA256SUMS gives $a_digest for $file, and you asked for $pinned"; fi
}

room() {
  free=$(free_kib "$(near "$root")")
  if [ -n "$free" ] && [ "$free" -lt 150000 ]; then fail "150 MB are needed below $prefix, and $((free / 1000)) MB are free" "make room, or choose another place: --prefix DIR"; fi
}

# Put the executable where the parts above take it up, verified.
obtain() {
  incoming=$versions/.incoming-$a_digest
  # A home may be shared: a process is one of its host.
  part=$incoming.$(uname -n).$$
  note "fetching $file from ${offline:-$base}"
  fetch "$file" "$part" 512
  actual=$(digest_of "$part")
  [ "$actual" = "$a_digest" ] || fail "$file has SHA-256 ${actual:-unknown}, and SHA256SUMS says $a_digest" "$retry"
  if [ -n "${version:-}" ]; then
    chmod 500 "$part"
    has_version=$("$part" --version 2>/dev/null </dev/null)
    case $has_version in
      '' | "$version") ;;
      *) fail "that is version $has_version, not $version" ;;
    esac
  fi
  mv -f "$part" "$incoming" || fail "$incoming cannot be written"
}

# sweep BEFORE_PID: what an installer has left there that is killed, and was this user's; a process of that number may be anybody's.
sweep() {
  for left in "$1"*; do
    pid=${left##*.}
    case $pid in '' | *[!0-9]*) continue ;; esac
    if kill -0 "$pid" 2>/dev/null; then continue; fi
    if [ -n "$(find "$left" -prune -user "$(id -u)" 2>/dev/null)" ]; then rm -rf "$left" 2>/dev/null; fi
  done
}

clean_up() {
  rm -rf "${scratch:?}"
  if [ -n "${part-}" ]; then rm -f "$part"; fi
}

install_it() {
  platform
  source_of_files
  scratch=${TMPDIR:-/tmp}/clio-relay-install.$$
  mkdir "$scratch" || fail "no directory for temporary files could be made: $scratch" "set TMPDIR"
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' HUP TERM
  if [ "$dry" = no ]; then sweep "${TMPDIR:-/tmp}/clio-relay-install."; fi
  expected_digest
  if [ "$dry" = yes ]; then
    printf '%s\n' "file       $file" "from       ${offline:-$base}" "sha256     $a_digest" "to         $versions/$a_digest/clio-relay" "link       $launcher"
    return
  fi
  a_home=$root a_keep=1 a_whole=no a_at=$(date -u +%Y-%m-%dT%H:%M:%SZ) CLIO_NONCE=install-$$
  room
  carry_out prepare_main
  for left in "$versions"/.incoming-*."$(uname -n)".*; do sweep "${left%.*}."; done
  if [ "$(value installed)" != yes ]; then obtain; fi
  carry_out install_main
  result
}

# word TEXT: as one word of a shell, whatever is in it (POSIX, Shell Command Language, 2.2.2; fish reads it alike, but for a backslash).
word() {
  case $1 in
    *[!A-Za-z0-9/._-]*) printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")" ;;
    *) printf '%s' "$1" ;;
  esac
}

# add_to FILE: the command that has the shell whose file it is find the launcher.
add_to() {
  case $bin in
    *[!A-Za-z0-9/._-]*) note "  printf '%s\\n' $(word "export PATH=$(word "$bin"):\"\$PATH\"") >>~/$1" ;;
    *) note "  echo 'export PATH=\"$bin:\$PATH\"' >>~/$1" ;;
  esac
}

# csh has no way to quote everything.
add_to_csh() {
  case $bin in
    *[!A-Za-z0-9/._\ -]*) note "  as a part of PATH in ~/.cshrc" ;;
    *) note "  echo 'setenv PATH \"$bin:\${PATH}\"' >>~/.cshrc" ;;
  esac
}

result() {
  installed=$(value trial_said)
  printf 'clio-relay %s is installed: %s\n' "${installed% }" "$root/current/clio-relay"
  case $(value launcher) in
    other) note "note: $launcher is something else and stays as it is; ours is $root/current/clio-relay" && return ;;
    failed) note "note: $launcher cannot be written; use $root/current/clio-relay" && return ;;
  esac
  case ${SHELL##*/} in
    bash | zsh | fish) note "to complete command lines in ${SHELL##*/}: clio-relay completion ${SHELL##*/}; with --help it says where that goes" ;;
  esac
  bin=${launcher%/*}
  case :$PATH: in
    *:"$bin":*)
      first=$(command -v clio-relay)
      if [ "$first" != "$launcher" ]; then note "note: another clio-relay comes first on PATH: $first"; fi
      ;;
    *)
      note "$bin is not on PATH. Add it:"
      case ${SHELL##*/} in
        fish) note "  fish_add_path $(word "$bin")" ;;
        csh | tcsh) add_to_csh ;;
        zsh) add_to .zprofile ;;
        bash) add_to .bashrc ;;
        *) add_to .profile ;;
      esac
      note "and open a new shell, or go on with $launcher"
      ;;
  esac
}

uninstall_it() {
  if [ "$dry" = yes ]; then
    for place in "$launcher" "$root/current" "$root/previous" "$versions"/*; do
      if [ -e "$place" ] || [ -L "$place" ]; then printf 'would remove %s\n' "$place"; fi
    done
    return
  fi
  a_home=$root a_base=${CLIO_RELAY_HOME:-$HOME} a_cluster='' a_purge=no CLIO_NONCE=install-$$
  carry_out uninstall_main
  printf '%s\n' "$report" | sed -n 's/^removed /removed /p'
  if [ -n "$(value absent)" ]; then note "nothing is installed below $prefix"; fi
  if [ -n "$(value running)" ]; then
    note "still running, and so still there: $(value running)"
    note "end it with '$(value running)/clio-relay desktop stop' and run this again"
  fi
  if [ -n "$(value remains)" ]; then
    note "what remains is yours (KiB, place):"
    printf '%s\n' "$report" | sed -n 's/^remains /  /p' >&2
  fi
}

clio_relay_install() {
  umask 077
  LC_ALL=C
  export LC_ALL
  options "$@"
  refuse_sudo
  places
  if [ "$action" = uninstall ]; then uninstall_it; else install_it; fi
}

{ clio_relay_install "$@"; exit; }
