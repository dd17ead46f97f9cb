# What tells one site from another (docs/connection-model.md, "Login nodes"). What stands before this: layout.sh.

# site_marker: the digest of the site's marker; nothing where it has none.
site_marker() {
  for marker in /etc/clio-relay/site-marker "$HOME/.config/clio-relay/site-marker"; do
    if [ -f "$marker" ] && [ -r "$marker" ]; then
      digest_of "$marker"
      return
    fi
  done
}

# scheduler_cluster: what the scheduler calls its cluster: scontrol(1), slurm.conf(5), or the file of Grid Engine's cell; nothing where none says.
scheduler_cluster() {
  if has scontrol; then
    named=$(trial 10 scontrol show config </dev/null 2>/dev/null | cluster_name)
    if [ -n "$named" ]; then
      printf '%s' "$named"
      return
    fi
  fi
  for settings in "${SLURM_CONF:-/etc/slurm/slurm.conf}" /etc/slurm-llnl/slurm.conf; do
    if [ -r "$settings" ]; then
      cluster_name <"$settings"
      return
    fi
  done
  cell=${SGE_ROOT-}/${SGE_CELL:-default}/common/cluster_name
  if [ -n "${SGE_ROOT-}" ] && [ -r "$cell" ]; then sed -n '1s/[[:space:]]*$//p' "$cell"; fi
}

# cluster_name: the value of ClusterName among lines of `name = value`.
cluster_name() {
  awk '{ sub(/#.*/, "") } tolower($0) ~ /^[ \t]*clustername[ \t]*=/ { sub(/^[^=]*=[ \t]*/, ""); sub(/[ \t].*/, ""); print; exit }'
}
