# clio-relay in fish: what `clio-relay completion fish` prints. Each answer is that of the program itself; nothing of it is ever evaluated.
function __clio_relay_words
    set -l current (commandline -ct)
    command clio-relay __complete fish (commandline -opc)[2..-1] "$current" 2>/dev/null </dev/null
end
# One answer for all that is looked at for one completion: whether it is of a kind.
function __clio_relay_is --argument-names kind
    set -l line (commandline -cp | string collect)
    if test "$__clio_relay_line" != "$line"; or contains -- $kind $__clio_relay_told
        set -g __clio_relay_answer (__clio_relay_words)
        set -g __clio_relay_line "$line"
        set -g __clio_relay_told
    end
    set -a __clio_relay_told $kind
    string match -q -- "$kind*" "$__clio_relay_answer[1]"
end
function __clio_relay_directories
    set -l option (commandline -ct | string match -r -- '^--[^=]*=')
    set -l directories (__fish_complete_directories (commandline -ct | string replace -r -- '^--[^=]*=' ''))
    string replace -r -- '^' "$option" $directories
end
function __clio_relay_command
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    set -l line (string escape -- $words[(math $at + 1)..-1]) (commandline -ct)
    complete -C "$line"
end
complete -c clio-relay -f
complete -c clio-relay -k -n '__clio_relay_is words' -a '$__clio_relay_answer[2..-1]'
complete -c clio-relay -n '__clio_relay_is files' -F
complete -c clio-relay -n '__clio_relay_is directories' -a '(__clio_relay_directories)'
complete -c clio-relay -n '__clio_relay_is command' -a '(__clio_relay_command)'
