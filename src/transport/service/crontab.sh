# crontab(1) edits the table in place, and tells "none yet" from "cannot be read" itself: its editor is a program of ours.

# edit_crontab WORD LINE…: the table without the lines that have WORD, and with these.
edit_crontab() {
  named=$1
  shift
  editor=$state/.crontab-editor
  {
    printf '#!/bin/sh\n'
    printf 'grep -vF "$CLIO_NAMED" "$1" >"$1.clio"\n[ $? -le 1 ] || exit 1\n'
    printf '[ -z "$CLIO_LINES" ] || printf "%%s\\n" "$CLIO_LINES" >>"$1.clio"\n'
    # crontab looks at the time of modification, in seconds, of the file that it made: it is written over, and not at once.
    printf 'sleep 1\n'
    printf 'cat "$1.clio" >"$1" && rm -f "$1.clio"\n'
  } >"$editor" && chmod 700 "$editor"
  CLIO_NAMED=$named CLIO_LINES=$(printf '%s\n' "$@") EDITOR=$editor VISUAL=$editor bounded 30 crontab -e >/dev/null 2>&1 </dev/null
  edited=$?
  rm -f "$editor"
  return "$edited"
}

# cron_word FILE: as it stands in the table. cron takes % for the end of a line.
cron_word() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g; s/%/\\\\%/g")"; }

# entries FILE: how many lines name it.
entries() { crontab -l 2>/dev/null | grep -cF "$(cron_word "$1")"; }

# crontab_without FILE: no line of it, and no table where there was none before and nobody has changed what crontab(1) made of it.
crontab_without() {
  edit_crontab "$(cron_word "$1")" && [ "$(entries "$1")" -eq 0 ] || return 1
  if [ -f "$1.first-table" ] && [ "$(others "$1" | cksum)" = "$(cat "$1.first-table")" ]; then crontab -r; fi
  rm -f "$1.first-table"
}

# others FILE: the lines that do not name it.
others() { crontab -l 2>/dev/null | grep -vF "$(cron_word "$1")"; }

# cron_runs: yes or no; unknown where other users' processes cannot be seen (proc(5), hidepid). By their names: cron, cronie and busybox, fcron.
cron_runs() {
  for comm in /proc/[0-9]*/comm; do
    name=
    read -r name 2>/dev/null <"$comm"
    case $name in cron | crond | fcron) printf yes && return ;; esac
  done
  if has systemctl && bounded 10 systemctl --quiet is-active cron.service crond.service cron.target 2>/dev/null; then printf yes; elif [ -r /proc/1/comm ] && [ "$(cat /proc/1/comm 2>/dev/null)" != "" ]; then printf no; else printf unknown; fi
}

# crontab_with FILE: run it at boot, and every five minutes; it ends at once where it runs already.
crontab_with() {
  word=$(cron_word "$1")
  first=no
  crontab -l >/dev/null 2>&1 || first=yes
  edit_crontab "$word" "@reboot $word # clio-relay" "*/5 * * * * $word # clio-relay" && [ "$(entries "$1")" -eq 2 ] || return 1
  if [ "$first" = yes ]; then others "$1" | cksum >"$1.first-table"; fi
}
