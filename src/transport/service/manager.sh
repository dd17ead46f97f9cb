# The user's service manager. What stands before this: a_unit.
XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}
export XDG_RUNTIME_DIR
unit_file=$HOME/.config/systemd/user/$a_unit

manager() { bounded 60 systemctl --user --no-pager "$@"; }

# show: what the manager says of the unit (systemctl(1), show), as records.
show() {
  manager show "$a_unit" -p LoadState,ActiveState,SubState,Result,UnitFileState,MainPID,NRestarts,InvocationID,Job,FragmentPath,NeedDaemonReload,ActiveEnterTimestampMonotonic,ExecMainStartTimestampMonotonic 2>/dev/null |
    while IFS= read -r line; do say show "$line"; done
}

# of PROPERTY
of() { manager show "$a_unit" -p "$1" 2>/dev/null | sed -n "s/^$1=//p"; }

# linger: yes only where logind says so.
linger() { bounded 10 loginctl show-user "$(id -un)" -p Linger 2>/dev/null | sed -n 's/^Linger=//p'; }

# reachable: whether there is a manager to ask.
reachable() { [ -d /run/systemd/system ] && has systemctl && manager show -p Version >/dev/null 2>&1; }
