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

crontab_without() { edit_crontab "$(cron_word "$1")" && [ "$(entries "$1")" -eq 0 ]; }

# crontab_with FILE: run it at boot, and every five minutes; it ends at once where it runs already.
crontab_with() {
  word=$(cron_word "$1")
  edit_crontab "$word" "@reboot $word # clio-relay" "*/5 * * * * $word # clio-relay" && [ "$(entries "$1")" -eq 2 ]
}
