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

@test "12, 2: two all-gathers less" {
    exercise 12-sharded 2
    change 's/    hand_over\(t\); \/\/ so the place/$ENV{answer}\n$&/'
    wrong 'FAILED: rank 0, weight 0' 4
    place=$(grep -o '`(use < [^`]*`' "$top/$lesson/README.md" | tr -d '`')
    place=$place perl -0pi -e 's/use % 2\) \* t->layer/$ENV{place}) * t->layer/' "$program.c"
    right 4
    grep -q '^a rank sends 122880 bytes a step' <<<"$out"
    for layers in 1 2 3; do
        right 3 --layers $layers
    done
    right 3 --stage 2
}

@test "13, 3: the counts by MPI" {
    exercise 13-experts 3
    change 's/CHECK_CUDA\(cudaMemcpyAsync\(leave, road->leave.*?StreamSynchronize.*?;/(void)come;\n$ENV{answer}/s'
    right 4
    right 3 --load even,one,empty
}

@test "14, 2 and 3: orders that hang" {
    lesson=14-pipeline program=pipeline answer='' more=''
    cp "$top/$lesson"/*.[ch] .
    change 's/    network_malloc\(n, p\.ahead/    if (p.ahead > 2)\n        p.ahead = 2;\n$&/'
    right 2
    wrong 'NCCL CHECK: deadlock: ranks wait for one another' 4
    cp "$top/$lesson/$program.c" .
    change 's/done->backward == back/back == 1/; s/next->backward == back/back == 0/'
    wrong 'NCCL CHECK: deadlock: ranks wait for one another' 3 --all-forward
}

@test "15, 3 and 5: who calls in the other order; two halves for the sum of a row" {
    exercise 15-grid 5
    change 's/CHECK_NCCL\(\s*ncclAllReduce\(numbers.*?;/$ENV{answer}/s'
    right 4
    right 8 --columns 4
    for who in 'g->row == 1 && g->column == 1' 'g->row == 0' 'g->row == g->column'; do
        cp "$top/$lesson/$program.c" .
        change "s/if \\(l > 0 && rows\\)/if ($who) average_in_column(g, n->gradient[l], 2 * w * slice);\n\$&/;
            s/if \\(columns\\)/if (!($who))/"
        case $who in
        *column) wrong 'NCCL CHECK: deadlock: ranks wait for one another' 4 ;;
        *) right 4 ;;
        esac
    done
}
