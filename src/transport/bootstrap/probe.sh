# What a host is and what is on it. What it writes it removes again. What stands before this: a_cluster, a_home, layout.sh, site.sh.
main() {
  say os "$(uname -s)"
  say machine "$(uname -m)"
  say kernel "$(uname -r)"
  say hostname "$(uname -n)"
  say boot_id "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"
  say user "$(id -un)"
  say uid "$(id -u)"
  say home "$HOME"
  say home_real "$(cd -P "$HOME" 2>/dev/null && pwd -P)"
  libc
  case " $(sed -n '/^flags/{p;q;}' /proc/cpuinfo 2>/dev/null) " in *' avx2 '*) say avx2 yes ;; *) say avx2 no ;; esac
  say site_marker "$(site_marker)"
  say scheduler_cluster "$(scheduler_cluster)"
  say root "$root"
  place "$(near "$root")"
  installed
  if [ -e "$root/core/$a_cluster" ] || [ -e "$root/spool/$a_cluster" ]; then say queue yes; else say queue no; fi
  owner
  manager
  for tool in sha256sum shasum openssl perl timeout flock setsid nohup crontab systemctl loginctl; do
    if has "$tool"; then say tool "$tool"; fi
  done
  say over yes
}

libc() {
  version=$(getconf GNU_LIBC_VERSION 2>/dev/null)
  if [ -n "$version" ]; then
    say libc glibc
    say libc_version "${version#glibc }"
    return
  fi
  for loader in /lib/ld-musl-*.so.1; do
    if [ -e "$loader" ]; then say libc musl; fi
  done
}

place() {
  real=$(cd -P "$1" 2>/dev/null && pwd -P)
  say place "$1"
  say place_real "$real"
  # The longest mount point that holds it (proc_pid_mountinfo(5)); the last of equal ones hides the others.
  mount=$(PLACE=$real awk '
    BEGIN { place = ENVIRON["PLACE"] "/"; longest = 0 }
    {
      point = $5; gsub(/\\040/, " ", point)
      prefix = point == "/" ? "/" : point "/"
      if (index(place, prefix) != 1 || length(prefix) < longest) next
      longest = length(prefix)
      for (i = 7; i <= NF && $i != "-"; i++);
      kind = $(i + 1); options = $6 "," $(i + 3)
    }
    END { print kind, options }' /proc/self/mountinfo 2>/dev/null)
  say mount "$mount"
  free=$(free_kib "$real")
  say free_kib "$free"
  say free_inodes "$(free_inodes "$real")"
  # Nothing is printed until the file is gone again: who cuts the channel must not leave it.
  probe=$1/.clio-relay-probe.$$
  writable=no starts=unknown
  if (printf '#!/bin/sh\nexit 42\n' >"$probe") 2>/dev/null; then
    writable=yes
    chmod 700 "$probe"
    "$probe" >/dev/null 2>&1
    if [ $? -eq 42 ]; then starts=yes; else starts=no; fi
  fi
  rm -f "$probe" 2>/dev/null
  say writable "$writable"
  say starts "$starts"
}

installed() {
  for file in "$versions"/*/clio-relay; do
    [ -f "$file" ] || continue
    directory=${file%/clio-relay}
    say version "${directory##*/} $(size_of "$file") $(cat "$directory/version" 2>/dev/null)"
  done
  current=$(readlink "$root/current" 2>/dev/null)
  say current "${current##*/}"
  previous=$(readlink "$root/previous" 2>/dev/null)
  say previous "${previous##*/}"
  if [ -e "$root/current" ] && [ ! -L "$root/current" ]; then say foreign "$root/current"; fi
  if [ -x "$root/current/clio-relay" ]; then
    said=$(trial 30 "$root/current/clio-relay" --version 2>&1)
    say current_exit $?
    say current_said "$(printf '%s' "$said" | dd bs=1024 count=1 2>/dev/null)"
  fi
  if [ -r "$state/journal.jsonl" ]; then
    sed -n 's/.*"host":"\([A-Za-z0-9_.-]*\)".*/\1/p' "$state/journal.jsonl" | sort -u | while read -r node; do say node "$node"; done
  fi
}

owner() {
  record=$root/core/$a_cluster/owner.json
  [ -f "$record" ] || return 0
  said=$(dd if="$record" bs=16384 count=1 2>/dev/null)
  say owner "$said"
  pid=$(printf '%s' "$said" | sed -n 's/.*"pid":\([0-9]\{1,10\}\).*/\1/p')
  [ -n "$pid" ] || return 0
  say owner_stat "$(cat "/proc/$pid/stat" 2>/dev/null)"
  say owner_program "$(readlink "/proc/$pid/exe" 2>/dev/null)"
}

manager() {
  if [ -d /run/systemd/system ] && has systemctl; then
    say systemd "$(systemctl --version 2>/dev/null | sed -n '1s/^systemd \([0-9]*\).*/\1/p')"
    say systemd_user "$(XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$(id -u)} bounded 10 systemctl --user is-system-running 2>/dev/null)"
    say linger "$(bounded 10 loginctl show-user "$(id -un)" -p Linger 2>/dev/null | sed -n 's/^Linger=//p')"
  fi
}
