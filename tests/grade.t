#!/usr/bin/env perl
# make grade: a class of submissions, among them some that crash, hang, cheat or do harm. They get 0
# and a reason, and all others are graded as if they were alone. Prints TAP.
use strict;
use warnings;
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use FindBin qw($Bin);
use JSON::PP ();
use lib $Bin, "$Bin/../exercises";
use Programs qw(write_file);
use Exercises qw(parse read_file variant $top);

my $dir = tempdir('grade-test-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $share = parse("$top/exercises/01.1-share.c");
my $hangs = parse("$top/exercises/01.3-which-hangs.txt");
my $right = variant($share, 'solution');

# What stands first in the function, student by student; and what becomes of it.
my %harm = (
    carl  => ['printf("Solved.\n"); _exit(0);', 'ended early', 'before all was checked'],
    dora  => ['for (;;);', 'time or memory', 'did not end within 3 seconds'],
    eve   => ["FILE *f = fopen(\"$dir/class/anna/1-share.c\", \"a\"); if (f) fprintf(f, \"x\");",
              'writes elsewhere', "it writes elsewhere: $dir/class/anna/1-share.c"],
    fred  => ['if (kill(getppid(), SIGKILL) == 0 || kill(0, SIGKILL) == 0) printf("killed\n");', 'sends a signal', 'to another process'],
    gina  => ['*(volatile int *)8 = 1;', 'ended early', 'segmentation fault'],
    hugo  => ['for (;;) memset(malloc(50 << 20), 1, 50 << 20);', 'time or memory', 'more than 700 MiB'],
    ines  => ["if (system(\"touch $dir/class/x\") == 0) printf(\"written\\n\");", 'starts another program', 'touch'],
);
my %starter = (bob => variant($share, 'starter'));
for my $student (sort keys %harm) {
    make_path("$dir/class/$student");
    my $text = $right =~ s/^(void share[^{]*\{\n)/$1    $harm{$student}[0]\n/mr;
    write_file("$dir/class/$student/1-share.c", "#define _GNU_SOURCE\n#include <signal.h>\n#include <unistd.h>\n$text");
}
make_path("$dir/class/anna", "$dir/class/bob/01-nccl-broadcast/exercises");
write_file("$dir/class/anna/1-share.c", $right);
write_file("$dir/class/anna/3-which-hangs.txt", variant($hangs, 'solution'));
write_file("$dir/class/bob/01-nccl-broadcast/exercises/1-share.c", $starter{bob});
# Tests of the instructor's own, in place of the course's.
make_path("$dir/own");
write_file("$dir/own/01.3-which-hangs.txt", read_file("$top/exercises/01.3-which-hangs.txt") =~ s/answer B/answer C/r);

my $said = `make -s --no-print-directory -C '$top' BACKEND=cpu grade DIR='$dir/class' TIME=3 MEMORY=700 OUT='$dir/out' 2>&1`;
my $all = eval { JSON::PP->new->decode(read_file("$dir/out/grades.json")) } // {};
my %result;
for my $student (@{ $all->{students} // [] }) {
    $result{ $student->{student} }{ $_->{exercise} } = $_ for @{ $student->{results} };
}

my ($number, $failed) = (0, 0);
sub point {
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
point($summary && $summary->{handed_in} == 9 && $summary->{solved} == 1 && $summary->{wrong}{'time or memory'} == 2,
    'the summary of the class', $said);
my $xml = read_file("$dir/out/grades.xml");
my $cases = () = $xml =~ /<testcase /g;
my $failures = () = $xml =~ /<failure /g;
point($cases == 18 && $failures == 16 && read_file("$dir/out/grades.txt") =~ /^anna +1 +1 +2 of 2$/m,
    'JUnit XML and a table', "$cases cases, $failures failures\n" . read_file("$dir/out/grades.txt"));

my $own = `make -s --no-print-directory -C '$top' BACKEND=cpu grade DIR='$dir/class' N=01.3 TESTS='$dir/own' OUT='$dir/out' 2>&1`;
point($own =~ /^anna +0 +0 of 1$/m, 'tests of the instructor\'s own', $own);
my $none = `make -s --no-print-directory -C '$top' BACKEND=cpu grade 2>&1`;
point($none =~ /Which folder\? make grade DIR=submissions/, 'without a folder it asks for one', $none);
print "1..$number\n";
exit($failed ? 1 : 0);
