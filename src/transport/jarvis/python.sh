# The Python that JARVIS-CD runs with. What stands before this: a_setup (shell text that comes before every job of the cluster, or nothing).

# with_setup COMMAND…: a command with what the setup text makes of the account's surroundings.
with_setup() (
  if [ -n "$a_setup" ]; then eval "$a_setup" >/dev/null 2>&1 </dev/null; fi
  restored "$@"
)

# python_here: the path of a Python that is new enough; nothing where there is none.
python_here() {
  # shellcheck disable=SC2016
  with_setup /bin/sh -c '
    for name in python3 python3.15 python3.14 python3.13 python3.12 python3.11; do
      file=$(command -v "$name" 2>/dev/null) || continue
      "$file" -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null || continue
      exec "$file" -c "import sys; print(sys.executable)"
    done' </dev/null
}
