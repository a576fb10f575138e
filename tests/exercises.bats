#!/usr/bin/env bats
# The exercises whose answers are C: what the README has is put into the program, and must be right;
# the mistakes that the exercises are about must be named.
# shellcheck disable=SC2016,SC2030,SC2031 # what is quoted is Perl; each test has a shell of its own

load common

setup() {
    on_gpus && skip "one build is enough"
    cd "$BATS_TEST_TMPDIR" || return
}

setup_file() {
    build_lessons
}

# exercise FOLDER NUMBER [BLOCK]: $lesson, its program as $program.c here, and $answer, the C of the
# exercise's answer: the first block, or the one asked for. Lines with … in it end a part: $more has
# what follows.
exercise() {
    lesson=$1
    program=$(basename "$top/$lesson"/[a-z]*.c .c)
    cp "$top/$lesson"/*.[ch] .
    answer=$(awk -v number="$2." -v wanted="${3:-1}" '
        /^## / { inside = $2 == "Exercises"; next }
        inside && /^[0-9]+\. / { here = $1 == number }
        here && /^ *```/ { if (!code) code = /```C/ && ++blocks == wanted; else code = 0; next }
        here && code' "$top/$lesson/README.md")
    [ -n "$answer" ]
    more=$(sed '1,/^ *…$/d' <<<"$answer")
    answer=$(sed '/^ *…$/,$d' <<<"$answer")
}

# change PERL: of the program, in which it must find something. $ENV{answer} and $ENV{more} are known.
change() {
    cp "$program.c" before.c
    answer=$answer more=$more perl -0pi -e "$1" "$program.c"
    ! cmp -s before.c "$program.c"
}

# right N [ARGUMENT…], wrong TEXT N [ARGUMENT…]: how the changed program ends on N ranks.
right() {
    build "$program" "$lesson"
    top=$BATS_TEST_TMPDIR ranks "$1" "$program" "${@:2}"
    show
    [ "$code" -eq 0 ]
    [[ $(tail -n 1 <<<"$out") == "OK: "* ]]
}

wrong() {
    build "$program" "$lesson"
    top=$BATS_TEST_TMPDIR ranks "$2" "$program" "${@:3}"
    show
    [ "$code" -eq 1 ]
    grep -qF "$1" <<<"$out$err"
}
