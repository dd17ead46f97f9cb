# Say which frpc this host needs, and whether it is there and whole. What stands before this: a_home, a_amd64, a_arm64 (digests, or empty).
main() {
  case $(uname -s) in
    Linux) system=linux ;;
    *) system=$(uname -s | tr '[:upper:]' '[:lower:]') ;;
  esac
  wanted=
  case $(uname -m) in
    x86_64 | amd64) machine=amd64 wanted=$a_amd64 ;;
    aarch64 | arm64) machine=arm64 wanted=$a_arm64 ;;
    *) machine=$(uname -m) ;;
  esac
  say platform "${system}_$machine"
  say path "$root/frp/$wanted/frpc"
  if [ -n "$wanted" ] && [ -x "$root/frp/$wanted/frpc" ] && [ "$(digest_of "$root/frp/$wanted/frpc")" = "$wanted" ]; then say there yes; else say there no; fi
}
