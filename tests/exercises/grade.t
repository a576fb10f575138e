#!/usr/bin/env perl
# make grade: a class of submissions, among them some that crash, hang, cheat or do harm. They get 0
# and a reason, and all others are graded as if they were alone. Prints TAP.
use strict;
use warnings;
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use FindBin qw($Bin);
use Encode ();
use IO::Compress::Zip qw(:zip_method);
use JSON::PP ();
use POSIX ();
use Test::More;
use lib "$Bin/..", "$Bin/../../exercises/lib";
use Programs qw(write_file);
use Build qw(compile_flags preprocess);
use Guard qw(forbidden_source);
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
    # Machine code as data, another student's file, and a line that would make it the system's.
    noel  => ['((void (*)(void))code)();', 'forbidden', 'data in a section for code: code', 'const unsigned char code[] __attribute__((section(".text.code"))) = {0x0f, 0x05, 0xc3};'],
    odin  => ['root = 0;', 'forbidden', "It includes $dir/class/anna/1-share.c", "#define share hers\n#include \"$dir/class/anna/1-share.c\"\n#undef share"],
    pia   => ['root = 0;', 'forbidden', 'assembler', "asm(\".incbin \\\"$dir/class/anna/1-share.c\\\"\");"],
    # Strings that the compiler copies into its assembler, also after an apostrophe; and a call of the kernel as a constant.
    pete  => ['root = 0;', 'forbidden', 'a string in an attribute', 'void f(void) __attribute__((section(".text\n.incbin \"/etc/passwd\"\n#"))); void f(void) {}'],
    phil  => ['root = 0;', 'forbidden', 'a string in an attribute', "#ident \"x\\\"\\n.incbin \\\"$dir/class/anna/1-share.c\\\"\\n#\""],
    pina  => ['root = 0;', 'forbidden', 'assembler', q(char a = '"'; asm(".include \'x\'"); char b = '"';)],
    piet  => ['hide((unsigned long *)buf);', 'forbidden', 'assembler that calls the kernel',
              'static __attribute__((noinline)) void hide(volatile unsigned long *p) { *p = 0x9090c3050f58556aUL; }'],
    quin  => ['root = 0;', 'forbidden', 'leave #line out', 'const char *a = "/*";' . "\n??=line 1 \"/usr/include/stdio.h\"\n" . 'const char *b = "*/";'],
    # What the compiler and the linker say: the error, not where it is.
    cara  => ['int x = nobody', 'does not compile', 'error: '],
    dina  => ['ncclBroadcst(buf);', 'does not compile', 'undefined reference to'],
    emil  => ['huge[root] = 1;', 'time or memory', '5.0 GiB', 'static volatile char huge[5ll << 30];'],
    falk  => ['sleep(600);', 'time or memory', 'sleeps or waits'],
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
delete @harm{qw(nina piet)} if (POSIX::uname())[4] ne 'x86_64';
my %starter = (bob => "// begun\n" . variant($share, 'starter'));
sub hand_in {
    my ($path, $text) = @_;
    make_path("$dir/class/" . ($path =~ s{/[^/]*$}{}r));
    write_file("$dir/class/$path", $text);
}
for my $student (sort keys %harm) {
    my ($first, undef, undef, $before) = @{ $harm{$student} };
    my $text = $right =~ s/^(void share[^{]*\{\n)/($before \/\/ '') . "\n$1    $first\n"/mer;
    hand_in("$student/1-share.c", join "\n", '#define _GNU_SOURCE', (map { "#include <$_.h>" } qw(fcntl signal sys/mman unistd)), $text);
}
# As it was handed out; and so, after an editor on Windows; and the answer under the line for it.
hand_in('uma/1-share.c', variant($share, 'starter') =~ s/\n+\z//r);
hand_in('uma/2-too-early.c', variant(parse("$top/exercises/01.2-too-early.c"), 'starter'));
my $windows = "\xef\xbb\xbf" . variant($share, 'starter') =~ s/\n/ \t\r\n/gr . "\r\n \r\n";
hand_in('wim/1-share.c', $windows);
hand_in('wim/3-which-hangs.txt', variant($hangs, 'starter') =~ s/\n/\r\n/gr . "Answer: B\r\n");
hand_in('xia/1-share.c', Encode::encode('UTF-16', $right));
hand_in('yan/1-share.c', "// later\n");
# Other names: alone, beside one that is graded, and what is no program.
hand_in('zoe/share.c', $right);
hand_in('anna/1-share.c', $right);
hand_in('anna/2-too-early (1).c', '');
hand_in('anna/share.c', $right);
hand_in('anna/essay.docx', '');
hand_in('anna/broadcast.c', 'int mine;');
symlink 'essay.docx', "$dir/class/anna/2-too-early.c";
hand_in('anna/old/1-share.c', variant($share, 'starter'));
utime 1e9, 1e9, "$dir/class/anna/old/1-share.c";
# A whole clone with what make has built there; and somebody who is called like that.
hand_in('bob/Makefile', read_file("$top/Makefile"));
hand_in('bob/build/1-share.c', $right);
hand_in('bob/01-nccl-broadcast/broadcast.c', 'int of_last_year;');
hand_in('build/3-which-hangs.txt', variant($hangs, 'solution'));
hand_in('anna/3-which-hangs.txt', variant($hangs, 'solution'));
hand_in('bob/01-nccl-broadcast/exercises/1-share.c', $starter{bob});
# A name in Latin-1, and an answer that has such letters; a long one; a formula.
hand_in("J\xf6rg/3-which-hangs.txt", variant($hangs, 'starter') . "M\xfcnchen\n");
hand_in('=Maximiliane von und zu Hohenstein/3-which-hangs.txt', variant($hangs, 'starter') . "=1+1, \"C\"\n");
# Archives: a student's, and as Moodle makes them, with folders and without.
hand_in('box/01-nccl-broadcast/exercises/1-share.c', $right);
system("cd '$dir/class/box' && tar -czf ../gerd.tgz 01-nccl-broadcast && rm -r ../box") == 0 or die "no tar\n";
my $zip = IO::Compress::Zip->new("$dir/class/moodle.zip", Name => 'Cleo Rossi_12_assignsubmission_file_/3-which-hangs.txt');
$zip->print(variant($hangs, 'solution'));
$zip->newStream(Name => 'Dan Bo_13_assignsubmission_file_3-which-hangs.txt');
$zip->print(variant($hangs, 'solution'));
# Two of one name, one with an answer that is too long for a name, and one without files.
for ([21, 'B'], [22, 'A']) {
    $zip->newStream(Name => "Gil Wu_$_->[0]_assignsubmission_file_/3-which-hangs.txt");
    $zip->print(variant($hangs, $_->[1]));
}
my $long = 'x' x 300 . '.c';
$zip->newStream(Name => "Gil Wu_22_assignsubmission_file_/$long");
$zip->newStream(Name => 'Hal Ek_23_assignsubmission_file_/');
$zip->newStream(Name => '../../outside.txt');
$zip->print('x');
$zip->newStream(Name => 'Ella_14_assignsubmission_file_/work.zip');
my $inner = '';
my $nested = IO::Compress::Zip->new(\$inner, Name => 'ella/3-which-hangs.txt', Method => ZIP_CM_STORE);
$nested->print(variant($hangs, 'solution'));
$nested->close;
$zip->print($inner);
$zip->close;
hand_in('hans/broken.zip', 'not a zip');
# Tests of the instructor's own, in place of the course's.
make_path("$dir/own");
write_file("$dir/own/01.3-which-hangs.txt", read_file("$top/exercises/01.3-which-hangs.txt") =~ s/answer \[\[B\]\]/answer [[C]]/r);

my $said = `make -s --no-print-directory -C '$top' BACKEND=cpu grade DIR='$dir/class' TIME=3 MEMORY=400 OUT='$dir/out' 2>&1`;
my $all = eval { JSON::PP->new->decode(read_file("$dir/out/grades.json")) } // {};
my %result;
for my $student (@{ $all->{students} // [] }) {
    $result{ $student->{student} }{ $_->{exercise} } = $_ for @{ $student->{results} };
}

sub point($$;$) { # a match that fails is an empty list elsewhere
    my ($right, $name, $why) = @_;
    ok($right, $name) or diag($why // '');
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
point($summary && $summary->{handed_in} == keys(%harm) + 5 && $summary->{solved} == 2 && $summary->{wrong}{'time or memory'} == 7,
    'the summary of the class', $said);
point($said =~ /^uma 01.1 0: unchanged$/m && $said =~ /^wim 01.1 0: unchanged$/m && $said !~ /01\.2/ && !$summary->{wrong}{unchanged},
    'a file as it was handed out, also with other ends of lines', $said);
point($result{wim}{'01.3'}{solved}, 'Answer: B', $said);
point(($result{xia}{'01.1'}{reason} // '') =~ /UTF-16/, 'UTF-16', $result{xia}{'01.1'}{reason});
point(($result{yan}{'01.1'}{reason} // '') =~ /It has no function share/, 'a file with comments only', $result{yan}{'01.1'}{reason});
point($result{gerd}{'01.1'}{solved} && (3 == grep { $result{$_}{'01.3'}{solved} } 'Cleo Rossi', 'Dan Bo', 'Ella') && !-e "$dir/outside.txt",
    'archives, a student\'s and Moodle\'s', $said);

my $name = 'no exercise has this name';
my %left_out = ('anna/2-too-early (1).c' => $name, 'anna/2-too-early.c' => 'a link', 'anna/broadcast.c' => $name, 'anna/essay.docx' => $name,
    'anna/old/1-share.c' => 'a newer one counts', 'anna/share.c' => $name, 'bob/build' => 'what make builds', 'hans/broken.zip' => 'it cannot be unpacked',
    'moodle.zip: ../../outside.txt' => 'its name cannot be used', "moodle.zip: Gil Wu_22_assignsubmission_file_/$long" => 'its name cannot be used',
    'zoe/share.c' => $name);
my @left_out = map { "$_ ($left_out{$_})" } sort keys %left_out;
my ($list) = $said =~ /^Not graded:\n((?:  .*\n)*)/m;
is($list // '', join('', map { "  $_\n" } @left_out), 'what is not graded is named, with the reason') or diag($said);
is_deeply([$all->{not_graded}, [sort map { s/: (?=[^:]*$)(.*)/ ($1)/r } read_file("$dir/out/grades.csv") =~ /^[^,]*,,0,not graded,(.*)$/mg],
    [sort map { s/" time.*: (?=[^:]*$)(.*)/ ($1)/sr } read_file("$dir/out/grades.xml") =~ /name="([^"]*" time="0">\s*<skipped message="not graded: [^"]*)/g]],
    [\@left_out, \@left_out, \@left_out], 'in JSON, CSV and JUnit, too');
point($result{'Gil Wu (21)'}{'01.3'}{solved} && $result{'Gil Wu (22)'}{'01.3'}{kind} eq 'wrong result' && $result{'Hal Ek'} && $result{build}{'01.3'}{solved}
    && $said =~ /^\(A number after a name is Moodle's/m && $said !~ /Cleo Rossi \(/, 'two students of one name, and one without files', $said);
point($said !~ /non-portable|line \d+\.$/, 'no warning of Perl', $said);
point($said =~ /^zoe +- +- +0 of 2$/m && $said =~ /^anna +1 +1 +2 of 2$/m && read_file("$dir/out/grades.txt") =~ /^anna +1 +1 +2 of 2$/m
    && $said =~ /^Graded 20\d\d-\d\d-\d\d \d\d:\d\d by the course's version \d\S* .*CPU build; a run may take 3 s .* 400 MiB\.$/m,
    'the table: who, when, with what', $said);
my %line = map { length(Encode::decode('UTF-8', $_ =~ s/ +\d of 2$//r)) => 1 } $said =~ /^.* \d of 2$/mg;
point(keys %line == 1 && $said =~ /^J\xc3\xb6rg  /m, 'its columns stay under one another, whatever the names', $said);

my $xml = read_file("$dir/out/grades.xml");
my ($cases, $failures, $skipped) = map { scalar(() = $xml =~ /<$_ /g) } qw(testcase failure skipped);
my $passed = () = $xml =~ m{<testcase [^>]*/>}g;
point($cases == 2 * keys(%result) + @left_out && $passed == 9 && $failures == keys(%harm) + 6 && $skipped == $cases - $failures - $passed,
    'JUnit: passed, failed, and skipped where nothing was handed in', "$cases cases, $failures failed, $skipped skipped, $passed passed");
for my $file (qw(grades.txt grades.json grades.xml grades.csv)) {
    point(eval { Encode::decode('UTF-8', my $copy = read_file("$dir/out/$file"), Encode::FB_CROAK); 1 }, "$file is UTF-8", $@);
}
# A file with kernels has another preprocessor.
compile_flags();
my $kernel = parse("$top/exercises/25.2-a-few-too-many.cu");
my @says = map {
    write_file("$dir/2-a-few-too-many.cu", $_ . variant($kernel, 'solution'));
    forbidden_source("$dir/2-a-few-too-many.cu", preprocess($kernel, "$dir/2-a-few-too-many.cu", "$dir/preprocessed"));
} '', "#include \"$dir/class/zoe/share.c\"\n", "int a = 1'000; asm(\".incbin 'x'\"); int b = 1'000;\n";
point($says[0] eq '' && $says[1] =~ m{It includes \Q$dir\E/class/zoe/share\.c} && $says[2] =~ /assembler/, 'what a file with kernels includes', join "\n", @says);

my $csv = read_file("$dir/out/grades.csv");
my $rows = () = $csv =~ /\n/g;
point($csv =~ /\Astudent,exercise,points,kind,reason\n =Max/ && $csv =~ /^Cleo Rossi,01\.1,0,not handed in,\nCleo Rossi,01\.3,1,solved,$/m
    && $csv =~ /^ =Maximiliane von und zu Hohenstein,01\.3,0,wrong result,"No, not =1\+1, ""C""\. C passes: .*"$/m && $rows == 1 + $cases,
    'CSV', $csv);

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

# An archive instead of a folder. Gradescope: its folders, the course in one of them; and Classroom's commands.
my $archive = `make -s --no-print-directory -C '$top' BACKEND=cpu grade DIR='$dir/class/moodle.zip' OUT='$dir/out' 2>&1`;
point($archive =~ /^Ella +1 +1 of 1$/m, 'an archive instead of a folder', $archive);
make_path("$dir/autograder/submission/course/01-nccl-broadcast/exercises");
symlink $top, "$dir/autograder/source";
write_file("$dir/autograder/submission/course/01-nccl-broadcast/exercises/3-which-hangs.txt", variant($hangs, 'solution'));
sub gradescope {
    my ($exercises) = @_;
    system("AUTOGRADER='$dir/autograder' EXERCISES='$exercises' '$top/exercises/gradescope/run_autograder'") == 0 or return {};
    return eval { JSON::PP->new->decode(read_file("$dir/autograder/results/results.json")) } // {};
}
my $scope = gradescope('01.1 01.3');
is_deeply([map { [$_->{number}, $_->{score}, $_->{max_score}, $_->{status}] } @{ $scope->{tests} }],
    [['01.1', 0, 1, 'failed'], ['01.3', 1, 1, 'passed']], 'Gradescope') or diag(read_file("$dir/autograder/said"));
$scope = gradescope('77');
point(($scope->{score} // 1) == 0 && $scope->{output} =~ /No exercise of the course is N=77/, 'Gradescope: a reason where it fails', $scope->{output});

my $workflow = read_file("$top/exercises/classroom.yml");
my @ids = $workflow =~ /^ +id: (.+)$/mg;
my ($runners) = $workflow =~ /runners: (.+)$/m;
my @commands = $workflow =~ /^ +command: (make .*)$/mg;
is($runners, join(',', @ids), 'Classroom: each step is reported');
make_path("$dir/root/$_") for map { m{([^/]+)/$} } glob "'$top'/[0-9][0-9]-*/";
$ENV{EXERCISE_ROOT} = "$dir/root";
for my $command (@commands) {
    my ($n) = $command =~ /N=(\S+)/;
    my ($ex) = map { parse($_) } glob "'$top/exercises/$n'-*";
    my ($folder) = glob "'$dir/root'/" . substr($n, 0, 2) . '-*';
    my $file = "$folder/exercises/" . ($n =~ /\.(.*)/)[0] . "-$ex->{name}.$ex->{ending}";
    make_path("$folder/exercises");
    my @codes;
    for my $variant (qw(starter solution)) {
        write_file($file, variant($ex, $variant));
        push @codes, system("cd '$top' && $command >'$dir/said' 2>&1") >> 8;
    }
    is("@codes", '2 0', "Classroom: $command") or diag(read_file("$dir/said"));
}
done_testing();
