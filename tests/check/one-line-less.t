#!/usr/bin/env perl
# Every lesson with one statement removed: each that calls MPI, CUDA or NCCL in turn. Where the
# rest still compiles, it must end by itself, and either be right all the same or say what is
# wrong: no hang, no bare crash, no wrong result with exit code 0. Of lessons 00 and 01 every statement
# is tried, of the others every sixteenth; calls that begin and end all lessons, in the first two that have
# them. ALL=yes takes them all.
#
# A lesson is compiled once for all its statements that stand by themselves: each gets a condition in
# front, and $LEFT_OUT says which of them is left out. What is part of another statement, or declares
# something, is removed from the source, and the rest compiled.
#
#     tests/check/one-line-less.t [-v] [TEXT...]   only lesson.c:LINE that contain a TEXT; -v shows
#                                            what each variant prints
#
# Every third variant runs with 3 ranks, the others with 2; of lessons from which only a few are tried, those
# of every third lesson. RANKS="4" chooses others, JOBS=1 runs one at a time.
use strict;
use warnings;
use File::Basename qw(basename dirname);
use File::Temp qw(tempdir);
use FindBin qw($Bin);
use Time::HiRes qw(time);
use lib "$Bin/..";
use Programs qw(cpu_flags done_testing in_parallel ok read_file run write_file $limit $mpicc $top);

my $verbose = @ARGV && $ARGV[0] eq '-v' && shift @ARGV;
my $jobs    = delete $ENV{JOBS} // 2;
my @ranks   = split ' ', delete $ENV{RANKS} // '';
my $all     = delete $ENV{ALL};
my %options = (
    'bandwidth.c'    => '--factor 8', # of all its sizes every third
    'peer_to_peer.c' => '-n 1000',
);

# The statements of a program that call MPI, CUDA or NCCL: first line, last line, text, and whether
# it stands by itself. A statement is a line, or as many as it takes to close its parentheses.
sub statements {
    my ($source) = @_;
    my @lines = split /\n/, $source;
    my @found;
    my $comment = 0;
    my $before  = '';
    for (my $i = 0; $i < @lines; $i++) {
        my ($first, $depth, $text) = ($i, 0, '');
        while (1) {
            my $code = $lines[$i] =~ s{//.*}{}r =~ s{/\*.*?\*/}{}gr =~ s/"(?:\\.|[^"])*"/""/gr;
            $code = '' if $comment && $code !~ m{\*/};
            $comment = $code =~ m{/\*} || $comment && $code !~ m{\*/};
            $code =~ s{/\*.*|.*\*/}{};
            $depth += ($code =~ tr/(//) - ($code =~ tr/)//);
            $text .= ' ' . $code =~ s/^\s+|\s+$//gr;
            last if $depth <= 0 || $i == $#lines;
            $i++;
        }
        $text =~ s/^ //;
        my $whole = $text =~ /^\w+\(.*\);$/ && $before =~ /[;{}:]$/;
        $before = $text if $text ne '';
        next if $text !~ /\b(?:MPI_|cuda|nccl|cublas)\w+\s*\(/;
        # Lesson 23 tries again for ever, and says so, if it has no deadline or does not ask. Without its
        # pinned memory lesson 18 writes through a null pointer: no call, and so nothing that checks see. Without the
        # number of ranks lesson 07's arrays on the stack have any size.
        next if $text =~ /MPI_Comm_size\(MPI_COMM_WORLD, &s\.nranks|MPI_Wtime\(\) > end|ncclCommGetAsyncError\(t->comm, &state\)|cudaHostAlloc\(\(void \*\*\)&job\.pinned/;
        push @found, {first => $first, last => $i, text => $text, whole => $whole};
    }
    return @found;
}

# What a run said, without what mpirun says of any process that ends early. What it says of a
# missing MPI_Finalize is to the point.
sub own_words {
    my ($stderr) = @_;
    my $to_the_point = $stderr =~ /exited without calling "finalize"/;
    $stderr =~ s/^-{20,}\n.*?^-{20,}\n//gms if !$to_the_point;
    $stderr =~ s/^\[[\w.-]+:\d+\] (?:\*\*\* (?:Process received|Signal|End of error)|Signal|Failing|\[ ?\d+\]).*\n//gm;
    $stderr =~ s/^\[[\w.-]+:\d+\] \d+ more processes? .*\n|^\[[\w.-]+:\d+\] Set MCA .*\n//gm;
    $stderr =~ s/^\s+//;
    return $stderr;
}

# What is wrong with the end of one run; an empty string if it is right or named.
sub problem {
    my ($code, $stdout, $stderr, $expected, $warned) = @_;
    return "still running after $limit s" if $code == 124 || $code == 137;
    my $said = own_words($stderr);
    if ($code != 0) {
        return '' if $said ne '' || $stdout =~ /^FAILED/m;
        # A crash for want of a value: the compiler has named the variable and the line.
        return '' if $code > 128 && $warned->();
        return "exit code $code and no message";
    }
    my ($verdict) = $stdout =~ /^(.*)\n?\z/m;
    $verdict = (split /\n/, $stdout)[-1] // '';
    return '' if $verdict eq $expected;
    return '' if $said =~ /^NCCL CHECK:/m;
    return "exit code 0, and the last line is \"$verdict\", not \"$expected\"";
}

# Statements with which a lesson begins and ends. What it is about is none of these.
my $frame = qr/\b(MPI_(?:Init|Finalize|Comm_rank|Comm_size|Comm_set_errhandler|Bcast\(&id|Wtime)
    |cudaGetDeviceCount|cudaSetDevice|cudaStreamCreateWithFlags|cudaStreamDestroy|cudaEventDestroy
    |ncclGetUniqueId|ncclCommInitRank|ncclCommDestroy|cublasCreate|cublasSetStream|cublasDestroy|cudaFree)\b/x;
my %frame_tried;

my $dir   = tempdir('one-line-less-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $flags = cpu_flags();

# Unoptimised, which takes a third of the time. The program as it is lies in $home, with the headers
# that it has beside it.
sub compile {
    my ($source, $home, $binary) = @_;
    system "$mpicc -std=c11 -O0 -I'$top/common' -I'$home' '$source' '$dir/left_out.o' $flags -o '$binary' >/dev/null 2>&1";
    return $? == 0;
}

# Whether the compiler, which then has to look closely, tells of a variable without a value.
sub warned {
    my ($source, $home) = @_;
    my $said = `$mpicc -std=c11 -O2 -Wall -I'$top/common' -I'$home' '$source' $flags -c -o '$source.o' 2>&1`;
    return $said =~ /used uninitialized/;
}

# The program's lines, with a condition in front of each statement that stands by itself.
sub with_conditions {
    my ($source, @found) = @_;
    my @lines = split /\n/, $source;
    for (grep { $_->{whole} } @found) {
        $lines[$_->{first}] =~ s/^(\s*)/$1if (!left_out($_->{first})) /;
    }
    return join '', 'int left_out(int line); ', map { "$_\n" } @lines;
}

sub without {
    my ($source, $first, $last) = @_;
    my @lines = split /\n/, $source;
    # An empty line in place of each removed one, so that messages keep the line numbers.
    @lines[$first .. $last] = ('') x ($last - $first + 1);
    return join '', map { "$_\n" } @lines;
}

# Compiles, where it must, and runs one variant; its TAP lines, without numbers, go to a file.
sub check_variant {
    my ($variant, $file) = @_;
    my $base = "$dir/$variant->{id}";
    mkdir $base;
    my $source = "$base/" . basename($variant->{path});
    my $home   = dirname($variant->{path});
    write_file($source, without(@$variant{qw(source first last)}));
    my $binary = "$base/variant";
    local $ENV{LEFT_OUT} = $variant->{first};
    if ($variant->{whole}) {
        symlink $variant->{program}, $binary or die "$binary: $!\n";
    }

    open my $tap, '>', $file or die "$file: $!\n";
    my $what = "$variant->{name} without $variant->{text}";
    if (!$variant->{whole} && !compile($source, $home, $binary)) {
        print $tap "ok $what # SKIP does not compile\n";
        close $tap;
        return;
    }
    for my $n (@{$variant->{ranks}}) {
        my $begin = time;
        my ($code, $stdout, $stderr) = run($binary, $n, $options{basename $source});
        my $problem = problem($code, $stdout, $stderr, $variant->{expected}{$n},
            sub { warned($source, $home) });
        my $said = own_words($stderr);
        my $kind = $said =~ /NCCL CHECK: ([\w ]+)/ ? $1 : $code == 0 ? 'right'
            : $said eq '' && $stdout !~ /^FAILED/m ? 'the compiler warned' : 'said';
        printf $tap "%s %s, %d ranks: %s (%.1f s)\n", $problem ? 'not ok' : 'ok', $what, $n,
            $problem || $kind, time - $begin;
        print $tap map { "#   $_\n" } split /\n/, "$stdout$stderr" if $problem || $verbose;
    }
    close $tap;
}

write_file("$dir/left_out.c", <<'END');
#include <stdlib.h>
int left_out(int line);
int left_out(int line) {
    const char *which = getenv("LEFT_OUT");
    return which && atoi(which) == line;
}
END
system "$mpicc -O1 -c '$dir/left_out.c' -o '$dir/left_out.o'";
delete $ENV{LEFT_OUT};

my @variants;
$| = 1;
for my $path (sort glob "'$top'/[0-9][0-9]-*/*.c") {
    my $source = read_file($path);
    my $lesson = basename(dirname $path) . '/' . basename $path;
    my $few    = !$all && !@ARGV && $lesson !~ /^0[01]/;
    my @counts = @ranks ? @ranks : $few ? (substr($lesson, 0, 2) % 3 == 0 ? 3 : 2) : (3, 2, 2);
    my @found = statements($source);
    for (@found) {
        $_->{name} = "$lesson:" . ($_->{first} + 1);
    }
    if (@ARGV) {
        @found = grep { my $where = $_->{name}; grep { index($where, $_) >= 0 } @ARGV } @found;
    } elsif (!$all) {
        @found = grep { $_->{text} !~ $frame || $frame_tried{$1}++ < 2 } @found;
        # By their texts, so that a line more in a lesson leaves the choice as it is.
        @found = grep { unpack('%32C*', $_->{text}) % 16 == 0 } @found if $few;
    }
    next if !@found;
    my $program = "$dir/" . basename($path, '.c');
    my %expected;
    write_file("$program.c", with_conditions($source, @found));
    compile("$program.c", dirname($path), $program) or ok(0, "$lesson compiles"), next;
    for my $n (sort keys %{{map { $_ => 1 } @counts}}) {
        my ($code, $stdout, $stderr) = run($program, $n, $options{basename $path});
        $expected{$n} = (split /\n/, $stdout)[-1] // '';
        ok($code == 0 && $stderr eq '', "$lesson, $n ranks: as it is", $stderr);
    }
    for my $found (@found) {
        push @variants, {%$found, id => scalar @variants, path => $path, source => $source,
            program => $program, expected => \%expected,
            ranks => @ranks ? \@ranks : [$counts[@variants % @counts]]};
    }
}

in_parallel($jobs, $dir, \&check_variant, @variants);
done_testing();
