# One script at a time on an installation. The lock is a symbolic link: made in one step on every file system, network ones included, with its owner as
# its target: HOST:BOOT:PID:START:NONCE.

# field 22 of proc_pid_stat(5)
start_of() { sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }

# held OWNER FILE: whether the owner may still be at work.
held() {
  held_host=${1%%:*} held_rest=${1#*:}
  held_boot=${held_rest%%:*} held_rest=${held_rest#*:}
  held_pid=${held_rest%%:*} held_rest=${held_rest#*:}
  if [ "$held_host" = "$(uname -n)" ]; then
    # Where there is no /proc (macOS) nothing but the pid tells.
    [ "$held_boot" = "$lock_boot" ] && [ -n "$held_pid" ] && kill -0 "$held_pid" 2>/dev/null && [ "$(start_of "$held_pid")" = "${held_rest%%:*}" ]
  else
    # Nobody here can see a process of another host; none of ours is at work for so long.
    [ -z "$(find "$2" -prune -mmin +15 2>/dev/null)" ]
  fi
}

# locked FILE FUNCTION: run it while holding the lock. Waits for some 10 s.
locked() {
  lock_boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)
  lock_mine=$(uname -n):$lock_boot:$$:$(start_of $$):$CLIO_NONCE
  lock_left=40
  while ! ln -s "$lock_mine" "$1" 2>/dev/null; do
    lock_owner=$(readlink "$1" 2>/dev/null)
    # A network file system may have made the link, lost the answer, and tried again.
    [ "$lock_owner" != "$lock_mine" ] || break
    if [ -z "$lock_owner" ] && [ -e "$1" ]; then refuse foreign "$1 is not a lock of clio-relay; remove it"; fi
    if [ -n "$lock_owner" ] && ! held "$lock_owner" "$1"; then
      mv -f "$1" "$1.$$" 2>/dev/null && rm -f "$1.$$"
      continue
    fi
    lock_left=$((lock_left - 1))
    if [ "$lock_left" -le 0 ]; then
      [ -z "$lock_owner" ] || refuse busy "$lock_owner"
      refuse unwritable "$1 cannot be made: $(ln -s "$lock_mine" "$1" 2>&1)"
    fi
    if [ -z "$lock_owner" ]; then lock_left=$((lock_left - 10)); fi
    sleep 0.2 2>/dev/null || sleep 1
  done
  ("$2")
  lock_status=$?
  [ "$(readlink "$1" 2>/dev/null)" != "$lock_mine" ] || rm -f "$1"
  return "$lock_status"
}
