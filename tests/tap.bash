# TAP for the tests that are written in plain bash: their points, and the plan at the end.
# shellcheck shell=bash

number=0
failed=0
label='' # in front of each point's text

# The last line of Open MPI 5's own on stderr is a null byte: none of it is binary for that.
grep() {
    command grep -a "$@"
}

result() { # STATUS TEXT
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $label$2"
    else
        echo "not ok $number - $label$2"
        failed=1
    fi
}

is() { # GOT EXPECTED TEXT
    local status=0
    [ "$1" = "$2" ] || status=1
    result "$status" "$3"
    [ "$status" -eq 0 ] || printf '%s\n' "got:" "$1" "expected:" "$2" | sed 's/^/#   /'
}

finish() {
    echo "1..$number"
    exit "$failed"
}
