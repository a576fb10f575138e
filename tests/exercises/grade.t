#!/usr/bin/env perl
# make grade: a class of submissions, among them some that crash, hang, cheat or do harm. They get 0
# and a reason, and all others are graded as if they were alone. Prints TAP.
use strict;
use warnings;
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use FindBin qw($Bin);
use JSON::PP ();
use POSIX ();
use lib "$Bin/..", "$Bin/../../exercises/lib";
use Programs qw(write_file);
use Source qw(parse read_file variant $top);

my $dir = tempdir('grade-test-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $share = parse("$top/exercises/01.1-share.c");
my $hangs = parse("$top/exercises/01.3-which-hangs.txt");
my $right = variant($share, 'solution');

# What stands first in the function, student by student; what becomes of it; and what stands before.
my %harm = (
    carl  => ['printf("Solved.\n"); _exit(0);', 'ended early', 'before all was checked'],
    dora  => ['for (;;);', 'time or memory', 'did not end within 3 seconds'],
    gina  => ['*(volatile int *)8 = 1;', 'ended early', 'segmentation fault'],
    hugo  => ['for (;;) memset(malloc(50 << 20), 1, 50 << 20);', 'time or memory', 'more than 400 MiB'],
    rita  => ['MPI_Win win; char *all; MPI_Win_allocate_shared(300 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &all, &win); memset(all, 1, 300 << 20); for (;;);',
              'time or memory', 'more than 400 MiB'],
    sven  => ['for (;;) printf("%4000d\n", 1);', 'time or memory', 'printed more than 10 MB'],
    otto  => ['large[0] = 1;', 'time or memory', 'object file is larger than 100 MB', 'char large[200 << 20] = {1};'],
    # The object says what these do: they are not run.
    eve   => ["FILE *f = fopen(\"$dir/class/anna/1-share.c\", \"a\"); if (f) fprintf(f, \"x\");", 'forbidden', 'It calls fopen'],
    fred  => ['kill(getppid(), SIGKILL);', 'forbidden', 'It calls getppid, kill'],
    ines  => ["if (system(\"touch $dir/class/x\") == 0) printf(\"written\\n\");", 'forbidden', 'It calls system'],
    jan   => ["if (truncate(\"$dir/class/anna/1-share.c\", 0) == 0) printf(\"gone\\n\");", 'forbidden', 'It calls truncate'],
    kurt  => ['char word[999]; int f = open("/proc/self/environ", O_RDONLY); printf("%zd", read(f, word, 99));', 'forbidden', 'It calls open, read'],
    lena  => ['if (check_rank == 0) printf("0\n");', 'forbidden', 'It calls check_rank', 'extern int check_rank;'],
    mike  => ['memset(mmap(0, 1 << 30, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0), 1, 1 << 30);', 'forbidden', 'It calls mmap'],
    nina  => ['__asm__ volatile("syscall" : : "a"(60), "D"(0));', 'forbidden', 'assembler'],
    olga  => ['MPI_File f; MPI_File_open(MPI_COMM_SELF, "x", MPI_MODE_RDWR, MPI_INFO_NULL, &f);', 'forbidden', 'It calls MPI_File_open'],
    # He does not get the word that makes a verdict one by being called in the C library's place.
    paul  => ['root = 0;', 'wrong result', 'root 1: rank 0: element 0 of buf', 'int fprintf(FILE *f, const char *format, ...) {
    if (strncmp(format, "%s\n%d\n%d", 8) != 0)
        return 0;
    va_list list;
    va_start(list, format);
    char *word = va_arg(list, char *), text[300];
    int rank = va_arg(list, int), cases = va_arg(list, int);
    va_end(list);
    snprintf(text, sizeof text, "%s\n%d\n%d\n-1\n\n\n", word, rank, cases);
    return fputs(text, f);
}'],
);
delete $harm{nina} if (POSIX::uname())[4] ne 'x86_64';
my $handed = 2 + keys %harm;
my %starter = (bob => variant($share, 'starter') . "\n");
for my $student (sort keys %harm) {
    make_path("$dir/class/$student");
    my ($first, undef, undef, $before) = @{ $harm{$student} };
    my $text = $right =~ s/^(void share[^{]*\{\n)/($before \/\/ '') . "\n$1    $first\n"/mer;
    write_file("$dir/class/$student/1-share.c", join "\n", '#define _GNU_SOURCE', (map { "#include <$_.h>" }
        qw(fcntl signal sys/mman unistd)), $text);
}
make_path("$dir/class/uma"); # as it was handed out
write_file("$dir/class/uma/1-share.c", variant($share, 'starter'));
write_file("$dir/class/uma/2-too-early.c", variant(parse("$top/exercises/01.2-too-early.c"), 'starter'));
make_path("$dir/class/zoe"); # the file has another name
write_file("$dir/class/zoe/share.c", $right);
make_path("$dir/class/anna", "$dir/class/bob/01-nccl-broadcast/exercises");
write_file("$dir/class/anna/1-share.c", $right);
write_file("$dir/class/anna/2-too-early (1).c", '');
write_file("$dir/class/anna/notes.txt", '');
write_file("$dir/class/anna/3-which-hangs.txt", variant($hangs, 'solution'));
write_file("$dir/class/bob/01-nccl-broadcast/exercises/1-share.c", $starter{bob});
# Tests of the instructor's own, in place of the course's.
make_path("$dir/own");
write_file("$dir/own/01.3-which-hangs.txt", read_file("$top/exercises/01.3-which-hangs.txt") =~ s/answer B/answer C/r);

my $said = `make -s --no-print-directory -C '$top' BACKEND=cpu grade DIR='$dir/class' TIME=3 MEMORY=400 OUT='$dir/out' 2>&1`;
my $all = eval { JSON::PP->new->decode(read_file("$dir/out/grades.json")) } // {};
my %result;
for my $student (@{ $all->{students} // [] }) {
    $result{ $student->{student} }{ $_->{exercise} } = $_ for @{ $student->{results} };
}

my ($number, $failed) = (0, 0);
sub point($$;$) { # a match that fails is an empty list elsewhere
    my ($right, $name, $why) = @_;
    $number++;
    $failed++ if !$right;
    print $right ? '' : 'not ', "ok $number - $name\n";
    print map { "#   $_\n" } split /\n/, $why // '' if !$right;
}

point($result{anna}{'01.1'}{solved} && $result{anna}{'01.3'}{solved}, 'right submissions are solved', $said);
point(!$result{bob}{'01.1'}{solved} && $result{bob}{'01.1'}{reason} =~ /element 0 of buf is 0, expected/,
    'a wrong one is found in its folder, and told why', $said);
for my $student (sort keys %harm) {
    my (undef, $kind, $reason) = @{ $harm{$student} };
    my $it = $result{$student}{'01.1'} // {};
    my $got = ($it->{kind} // 'solved') . ': ' . ($it->{reason} // '');
    point(!$it->{solved} && ($it->{kind} // '') eq $kind && $it->{reason} =~ /\Q$reason\E/, "$student: $kind", "$got\n$said");
}
point(read_file("$dir/class/anna/1-share.c") eq $right && !-e "$dir/class/x", 'nothing was written elsewhere');
my ($summary) = grep { $_->{number} eq '01.1' } @{ $all->{exercises} // [] };
point($summary && $summary->{handed_in} == $handed && $summary->{solved} == 1 && $summary->{wrong}{'time or memory'} == 5,
    'the summary of the class', $said);
my $xml = read_file("$dir/out/grades.xml");
my $cases = () = $xml =~ /<testcase /g;
my $failures = () = $xml =~ /<failure /g;
point($cases == 2 * ($handed + 2) && $failures == $cases - 2 && read_file("$dir/out/grades.txt") =~ /^anna +1 +1 +2 of 2$/m,
    'JUnit XML and a table', "$cases cases, $failures failures\n" . read_file("$dir/out/grades.txt"));

point($said =~ /^zoe +- +- +0 of 2$/m && $said =~ m{^Not graded, because no exercise has such a file name:\n  anna/2-too-early \(1\)\.c\n  zoe/share\.c\n\n}m,
    'files with other names are named', $said);
point($said =~ /^uma +01.1 +0: unchanged$/m && $said =~ /^uma +=/m && $said !~ /01\.2/ && !$summary->{wrong}{unchanged}, 'a file as it was handed out', $said);

my $own = `make -s --no-print-directory -C '$top' BACKEND=cpu grade DIR='$dir/class' N=01.3 TESTS='$dir/own' OUT='$dir/out' 2>&1`;
point($own =~ /^anna +0 +0 of 1$/m, 'tests of the instructor\'s own', $own);
my $lesson = `make -s --no-print-directory -C '$top/01-nccl-broadcast' BACKEND=cpu grade DIR=../homework OUT='$dir/out' 2>&1`;
point($lesson =~ m{^There is no folder \Q$top\E/homework$}m, 'in a lesson\'s folder, too', $lesson);
my $none = `make -s --no-print-directory -C '$top' BACKEND=cpu grade 2>&1`;
point($none =~ /Which folder\? make grade DIR=submissions/, 'without a folder it asks for one', $none);
for (["DIR='$dir/none'", "no folder $dir/none"], ["DIR='$dir/class' TESTS='$dir/none'", "no folder $dir/none"],
    ["DIR='$dir/class' N=77", 'No exercise of the course is N=77'], ["DIR='$dir/class' N=02.1", 'has the name of an exercise, such as 1-mean.c']) {
    my ($setting, $expected) = @$_;
    my $refused = `make -s --no-print-directory -C '$top' BACKEND=cpu grade $setting OUT='$dir/out' 2>&1`;
    point($? != 0 && index($refused, $expected) >= 0, "grade $setting: $expected" =~ s/\Q$dir\E/…/gr, $refused);
}
print "1..$number\n";
exit($failed ? 1 : 0);
