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

@test "00, 3: the number on one's own machine" {
    exercise 00-nccl-hello-world 3
    change 's/CHECK_CUDA\(cudaSetDevice.*?;/$ENV{answer}/'
    export CPU_HOSTS=2:cyclic
    right 4
    [ "$(grep -c 'on [^:]*-[01]: GPU [01],' <<<"$out")" -eq 4 ]
    CPU_HOSTS=2 right 4
}

@test "01, 4: one element of one copy is found" {
    exercise 01-nccl-broadcast 4
    change 's/\n    \/\/ The call only/\n    int *other;
        CHECK_CUDA(cudaMalloc((void **)&other, bytes));
        CHECK_NCCL(ncclBroadcast(buf, other, count, ncclInt32, 0, comm, stream));$&/'
    change 's/(lesson_expect\(i, host\[i\], )42/CHECK_CUDA(cudaMemcpy(host + i, buf + i, sizeof *host, cudaMemcpyDeviceToHost));
        int root; CHECK_CUDA(cudaMemcpy(&root, other + i, sizeof root, cudaMemcpyDeviceToHost));
        $1root/; s/for \(size_t i = 0; i < count; i\+\+\)\n(        CHECK_CUDA.*?root\);)/for (size_t i = 0; i < count; i++) {\n$1\n}/s;
        s/    CHECK_CUDA\(cudaFree\(buf\)\);/    CHECK_CUDA(cudaFree(other));\n$&/'
    right 4
    change 's/    int \*other;/$ENV{answer}\n$&/'
    wrong 'FAILED: rank 3, element 2 is 41, expected 42' 4
}

@test "02, 4: in two halves" {
    exercise 02-nccl-allreduce 4
    change 's/CHECK_NCCL\(\s*ncclAllReduce.*?;/$ENV{answer}/s; s/lesson_expect.*?;/$ENV{more}/; s/host\[i\] = 1;/host[i] = rank + i;/'
    right 4
    right 3 -n 5
    change 's/recvbuf \+ half, count - half/recvbuf + half, half/'
    wrong 'FAILED: rank 0, element 4 is' 4 -n 5
}

@test "04, 2: scatter and gather" {
    exercise 04-all-to-all 2
    change 's/CHECK_NCCL\(ncclGroupStart.*GroupEnd\(\)\);/$ENV{answer}/s; s/    CHECK_CUDA\(cudaMemcpy\(host.*?expect.*?;/$ENV{more}/s'
    right 4
    right 3 -n 2
    change 's/if \(rank == 0\)\s*(CHECK_CUDA)/$1/'
    right 4 # who copies what it does not look at does nothing wrong
    [ -z "$err" ]
}

@test "04, 4: three wrong counts, three reports" {
    lesson=04-all-to-all program=all_to_all answer='' more=''
    cp "$top/$lesson/$program.c" .
    while read -r condition count report; do
        cp "$top/$lesson/$program.c" .
        change "s/recvbuf \\+ block, count/recvbuf + block, $condition ? $count : count/"
        wrong "NCCL CHECK: $report: " 4 -n 2
    done <<'END'
peer==nranks-1 count+1 memory
peer==0 count+1 race
peer==(rank+1)%nranks count-1 mismatch
END
}

@test "04, 6: one process, one group round all calls" {
    exercise 04-all-to-all 6
    lesson=01-nccl-broadcast program=all
    {
        cat <<'END'
#include "lesson.h"
int main(void) {
    ncclComm_t comms[64];
    cudaStream_t stream[64];
    int n, *buf[64], sum;
    CHECK_CUDA(cudaGetDeviceCount(&n));
    CHECK_NCCL(ncclCommInitAll(comms, n, NULL));
    for (int i = 0; i < n; i++) {
        const int mine = i + 1;
        CHECK_CUDA(cudaSetDevice(i));
        CHECK_CUDA(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
        CHECK_CUDA(cudaMalloc((void **)&buf[i], sizeof mine));
        CHECK_CUDA(cudaMemcpyAsync(buf[i], &mine, sizeof mine, cudaMemcpyHostToDevice, stream[i]));
    }
END
        echo "$answer"
        cat <<'END'
    for (int i = 0; i < n; i++) {
        CHECK_CUDA(cudaSetDevice(i));
        CHECK_CUDA(cudaStreamSynchronize(stream[i]));
        CHECK_CUDA(cudaMemcpy(&sum, buf[i], sizeof sum, cudaMemcpyDeviceToHost));
        lesson_expect(0, sum, n * (n + 1) / 2);
        CHECK_CUDA(cudaFree(buf[i]));
        CHECK_CUDA(cudaStreamDestroy(stream[i]));
        CHECK_NCCL(ncclCommDestroy(comms[i]));
    }
    CHECK_MPI(MPI_Init(NULL, NULL));
    const int exit_code = lesson_verdict("sum");
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
END
    } >all.c
    export CPU_DEVICES=4
    right 1
    grep -q 'all 4 sums' <<<"$out"
    change 's/.*ncclGroup.*\n//g'
    wrong 'NCCL CHECK: deadlock: one thread calls NCCL for several devices without a group' 1
}

@test "05, 3: the ring the other way round" {
    lesson=05-ring-allreduce program=ring_allreduce answer='' more=''
    cp "$top/$lesson/$program.c" .
    change 's/(ncclSend.*?)next/$1previous/; s/(ncclRecv\(.*?)previous/$1next/s'
    wrong 'FAILED: rank 0, element 0' 3 --no-tables
    change 's/rank - step - 1/rank + step + 1/; s/rank - step/rank + step/'
    right 3 --no-tables
    right 4 --no-tables -n 1003
}

@test "10, 3: one all-reduce of the four" {
    exercise 10-data-parallel 3
    change 's/for \(size_t l = 0; l < n\.layers; l\+\+\) \{\s*float \*g.*?\n        \}/$ENV{answer}/s'
    right 3
    change 's/\[0\], count, ncclFloat/[0], layer, ncclFloat/'
    wrong "the ranks' copies of the weights differ" 3
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
