# Put a version that was sent in its place, try it, and switch to it. Every step looks at what is there, so that a run that was cut anywhere is taken up by
# the next. What stands before this: a_digest, a_home, a_keep (how many other versions stay), a_at (the time, for the journal), a_whole (yes: prepare.sh of the
# same run has found the version in its place, and whole), and where a_home is the home of everything that the installation has: a_own_home (yes) and a_spool.
main() { locked "$state/lock" install; }

install() {
  exe=$versions/$a_digest/clio-relay
  placed
  trial_run
  knows_queues
  switch
  launch_link
  prune
  printf '{"at":"%s","host":"%s","run":"%s","step":"install","digest":"%s"}\n' "$a_at" "$(uname -n)" "$CLIO_NONCE" "$a_digest" >>"$state/journal.jsonl"
  if [ "$(wc -l <"$state/journal.jsonl")" -gt 1000 ]; then
    tail -n 500 "$state/journal.jsonl" >"$state/.journal" && mv -f "$state/.journal" "$state/journal.jsonl"
  fi
  say root "$root"
  say root_real "$(cd -P "$root" && pwd -P)"
  say executable "$root/current/clio-relay"
}

# flush FILE…: to the disk, as far as a shell can. Directories need a sync(1) that takes them.
flush() { sync "$@" 2>/dev/null || :; }

placed() {
  incoming=$versions/.incoming-$a_digest
  if [ -f "$exe" ] && [ ! -L "$exe" ] && { [ "$a_whole" = yes ] || [ "$(digest_of "$exe")" = "$a_digest" ]; }; then
    rm -f "$incoming"
    say placed kept
    return
  fi
  staged=$versions/.place-$a_digest
  [ -f "$incoming" ] || refuse incomplete "$incoming is not there"
  actual=$(digest_of "$incoming")
  if [ "$actual" != "$a_digest" ]; then
    rm -f "$incoming"
    refuse digest_differs "$actual"
  fi
  rm -rf "$staged"
  mkdir "$staged" || refuse unwritable "$staged"
  mv "$incoming" "$staged/clio-relay" && chmod 500 "$staged/clio-relay" || refuse unwritable "$incoming"
  flush "$staged/clio-relay" "$staged"
  if [ -e "$versions/$a_digest" ] || [ -L "$versions/$a_digest" ]; then
    mv "$versions/$a_digest" "$versions/.damaged-$a_digest.$$" || refuse unwritable "$versions/$a_digest"
  fi
  mv "$staged" "$versions/$a_digest" || refuse unwritable "$versions/$a_digest"
  flush "$versions"
  rm -rf "$versions/.damaged-$a_digest.$$"
  say placed new
}

trial_run() {
  said=$(trial 60 "$exe" --version 2>&1 </dev/null)
  code=$?
  if [ "$code" -eq 126 ]; then
    # Somebody may have it open for writing: an upload that was cut and does not know yet. A copy is nobody else's.
    cp "$exe" "$exe.$$" && chmod 500 "$exe.$$" && mv -f "$exe.$$" "$exe"
    said=$(trial 60 "$exe" --version 2>&1 </dev/null)
    code=$?
  fi
  said=$(printf '%s' "$said" | dd bs=1024 count=1 2>/dev/null)
  say trial_exit "$code"
  say trial_said "$said"
  [ "$code" -eq 0 ] || refuse does_not_start "$said"
  if [ "$(cat "$versions/$a_digest/version" 2>/dev/null)" != "$said" ]; then
    printf '%s\n' "$said" >"$versions/$a_digest/.version" && mv -f "$versions/$a_digest/.version" "$versions/$a_digest/version"
  fi
}

# A version whose worker would refuse a queue that is there is not switched to. What it knows it says (docs/queue.md, Schema); one that does not say it knows 4.
knows_queues() {
  knows=
  for queue in "$root"/core/*/queue.db; do
    schema=$(schema_of "$queue")
    [ -n "$schema" ] || continue
    if [ -z "$knows" ]; then
      knows=$(trial 60 "$exe" version --json 2>/dev/null </dev/null | sed -n 's/.*"queue_schema": *\([0-9]\{1,9\}\).*/\1/p')
      knows=${knows:-4}
    fi
    if [ "$schema" -gt "$knows" ]; then refuse queue_newer "$queue has schema $schema, and $said knows schemas up to $knows"; fi
  done
}

# schema_of FILE: the number that a queue's file has in its header (sqlite.org/fileformat.html, 1.3.15); nothing where that cannot be told.
schema_of() {
  # shellcheck disable=SC2046
  set -- $(dd if="$1" bs=1 skip=60 count=4 2>/dev/null | od -A n -t u1 2>/dev/null)
  if [ $# -eq 4 ]; then echo $((($1 * 256 + $2) * 65536 + $3 * 256 + $4)); fi
}

# point LINK DIGEST: in one step where mv has -T; else there is none of that name for a moment.
point() {
  new=$root/.$1.new
  rm -f "$new"
  ln -s "versions/$2" "$new" || refuse unwritable "$root/$1"
  if ! mv -fT "$new" "$root/$1" 2>/dev/null; then
    rm -f "$root/$1" && mv -f "$new" "$root/$1" || refuse unwritable "$root/$1"
  fi
}

switch() {
  before=$(readlink "$root/current" 2>/dev/null)
  before=${before##*/}
  say before "$before"
  if [ "$before" = "$a_digest" ]; then return; fi
  if [ -n "$before" ] && [ -f "$versions/$before/clio-relay" ]; then point previous "$before"; fi
  point current "$a_digest"
  flush "$root"
}

# A link, or where the installation is in a place of its own a program that says so: whoever logs in finds the same state as the worker.
launch_link() {
  wanted=$root/current/clio-relay
  if [ "${a_own_home-}" = yes ]; then
    text=$(launcher_text)
    found=
    if [ -f "$launcher" ] && [ ! -L "$launcher" ]; then found=$(dd if="$launcher" bs=16384 count=1 2>/dev/null); fi
  else
    text=$wanted
    found=$(readlink "$launcher" 2>/dev/null)
  fi
  if [ "$found" = "$text" ]; then
    say launcher kept
  elif ! launches && { [ -e "$launcher" ] || [ -L "$launcher" ]; }; then
    say launcher other
  elif mkdir -p "${launcher%/*}" 2>/dev/null && rm -f "$launcher" && make_launcher 2>/dev/null; then
    say launcher made
  else
    say launcher failed
  fi
}

make_launcher() {
  if [ "${a_own_home-}" = yes ]; then
    printf '%s\n' "$text" >"$launcher" && chmod 755 "$launcher"
  else
    ln -s "$wanted" "$launcher"
  fi
}

launcher_text() {
  printf '#!/bin/sh\n# clio-relay in %s\n' "$root"
  # shellcheck disable=SC2016
  printf 'if [ -z "${CLIO_RELAY_HOME-}" ]; then\n  CLIO_RELAY_HOME=%s\n  export CLIO_RELAY_HOME\n' "$(quoted "$root")"
  if [ -n "${a_spool-}" ]; then
    printf '  CLIO_RELAY_SPOOL_DIR=%s\n  export CLIO_RELAY_SPOOL_DIR\n' "$(quoted "$(expanded "$a_spool")")"
  fi
  printf 'fi\nexec %s "$@"\n' "$(quoted "$wanted")"
}

# Versions that run somewhere stay: the worker's, and those of shims, which outlive it. On a home that several hosts share, those of the others cannot be seen.
prune() {
  used=$(running)
  previous=$(readlink "$root/previous" 2>/dev/null)
  left=$a_keep
  for directory in $(cd "$versions" && ls -1t); do
    case $directory in *[!0-9a-f]*) continue ;; esac
    case " $a_digest ${previous##*/} " in *" $directory "*) continue ;; esac
    case $used in *" $directory "*) say kept "$directory"; continue ;; esac
    left=$((left - 1))
    if [ "$left" -ge 0 ] || elsewhere; then
      say kept "$directory"
    else
      rm -rf "${versions:?}/$directory"
      say removed "$directory"
    fi
  done
}

# Whether a worker of this installation has its record on another host.
elsewhere() {
  for record in "$root"/core/*/owner.json; do
    [ -f "$record" ] || continue
    grep -q "\"hostname\":\"$(uname -n)\"" "$record" || return 0
  done
  return 1
}
