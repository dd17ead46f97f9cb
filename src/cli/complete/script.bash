# clio-relay in bash: what `clio-relay completion bash` prints. Each answer is that of the program itself; nothing of it is ever evaluated.
_clio_relay() {
  local kind='' line at
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ -z $kind ]]; then kind=$line; else COMPREPLY+=("$line"); fi
  done < <(command clio-relay __complete bash "$COMP_WORDBREAKS" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null </dev/null)
  case $kind in
    files*) ;;
    directories) compopt +o default +o bashdefault -o dirnames 2>/dev/null ;;
    command)
      for ((at = 1; at < COMP_CWORD; at++)); do [[ ${COMP_WORDS[at]} != -- ]] || break; done
      if declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset $((at + 1))
      elif declare -F _command_offset >/dev/null; then
        _command_offset $((at + 1))
      elif ((at + 1 == COMP_CWORD)); then
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
      fi
      ;;
    *)
      compopt +o default +o bashdefault 2>/dev/null
      [[ $kind != *nospace ]] || compopt -o nospace 2>/dev/null
      ;;
  esac
  return 0
}
complete -o nosort -o bashdefault -o default -F _clio_relay clio-relay 2>/dev/null || complete -o bashdefault -o default -F _clio_relay clio-relay
