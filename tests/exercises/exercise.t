#!/usr/bin/env perl
# make exercise, as a reader uses it: one after the other, hints, the list, watching, starting over.
# The reader's files are copies in a folder of the test's own. Prints TAP.
use strict;
use warnings;
use File::Find qw(find);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use FindBin qw($Bin);
use Test::More;
use Time::HiRes qw(sleep);
my $dir;
BEGIN {
    $dir = tempdir('exercise-test-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    $ENV{EXERCISE_ROOT} = $dir;
}
use lib "$Bin/..", "$Bin/../../exercises/lib";
use Programs qw(write_file);
use Source qw(load_all read_file starter_path variant $top);
use Answer qw(answer_of same_answer);

my @all = load_all("$top/exercises");
make_path("$dir/$_") for map { m{([^/]+)/$} } glob "'$top'/[0-9][0-9]-*/";
delete @ENV{qw(N HINT WATCH RESET)};
my ($mpicc, $compile, $link) = split /\n/, `make -s --no-print-directory -C '$top' BACKEND=cpu exercise-flags`;
@ENV{qw(MPICC EXERCISE_COMPILE EXERCISE_LINK)} = ($mpicc, $compile, $link);

sub point($$;$) { # a match that fails is an empty list elsewhere
    my ($right, $name, $said) = @_;
    ok($right, $name) or diag($said // '');
}

# exercise SETTING…: what `exercise run` says with these settings, and its exit code.
sub exercise {
    my ($command, %setting) = @_;
    local %ENV = (%ENV, %setting);
    my $said = `'$top/exercises/exercise' $command 2>&1`;
    return ($said, $? >> 8);
}

# Whether a text has these words, however it is wrapped.
sub has {
    my ($said, $words) = @_;
    return index($said =~ s/\s+/ /gr, $words) >= 0;
}

sub solve { write_file(starter_path($_[0]), variant($_[0], 'solution')) }

my ($said, $code) = exercise('starters');
die $said if $code != 0 && $said !~ /no section Exercises/;
my ($first, $second, $third) = @all;

($said) = exercise('list');
point($said =~ /^0 of ${\ scalar @all} exercises solved/ && $said =~ /\[ \] \Q$third->{number}\E +\w+ +\Q$third->{title}\E: \Q$third->{trains}\E/
    && $said =~ /^complete: add what is missing, repair: .*takes \Q$first->{number}\E/ms, 'the list names all, what the kinds are, and the next', $said);

($said, $code) = exercise('run');
point($code == 1 && $said =~ /^\Q$first->{number} $first->{title}\E \(complete: add what is missing\).*Not solved yet.*HINT=1/s, 'the first is tried, and told what is missing', $said);

solve($first);
($said, $code) = exercise('run');
point($code == 0 && has($said, "Solved. $first->{learned}") && $said =~ /Solved.*Next: \Q$second->{number}\E/s && $said !~ /Not solved/,
    'solved: what was learned, and the next, which is not tried', $said);

($said, $code) = exercise('run', N => $first->{number});
point($code == 0 && $said =~ /: solved\.$/m && $said !~ /Solved\./, 'a solved one is not run again', $said);

solve($second);
$said = `env -u MPICC make -s -C '$top'/01-*/ exercise N=1.1 HINT=1 2>&1`;
point(has($said, '01.1 The missing broadcast, hint 1 of 3'), "in a lesson's folder, too, and without the zero", $said);
$said = `env -u MPICC make -s -C '$top'/01-*/ exercise N=01.1 RESET=1 2>&1`;
my ($named) = $said =~ /^(\S+) is as it was/m;
my ($folder) = glob "'$top'/01-*/";
point($named && -f "$folder/$named", 'what it names there is found from there', $said);

write_file(starter_path($third), "// begun\n" . variant($third, 'starter'));
($said, $code) = exercise('run');
point($code == 1 && $said =~ /^\Q$second->{number}\E.*Solved\..*^\Q$third->{number}\E.*Not solved/ms, 'one that is begun is tried at once', $said);
($said) = exercise('list');
point($said =~ /^2 of.*\[x\] \Q$second->{number}\E.*\[~\] \Q$third->{number}\E/s, 'the list says what is solved and what is begun', $said);

my @hints = map { (exercise('run', N => $third->{number}, HINT => $_))[0] } 1 .. 4;
point((!grep { !has($hints[$_], $third->{hint}[$_]) } 0 .. 2) && $hints[3] =~ /HINT is 1 to 3/ && $hints[1] =~ /^The next hint: .* HINT=3$/m && $hints[2] !~ /next/, 'three hints', join '', @hints);
($said, $code) = exercise('run', N => '77.1');
point($code != 0 && $said =~ /no exercise 77\.1: make exercises/, 'an unknown one', $said);
($said, $code) = exercise('run', N => '04');
my @of_04 = grep { $_->{lesson} eq '04' } @all;
point($code == 0 && $said =~ /^0 of ${\ scalar @of_04} .*make exercise N=$of_04[0]{number}\.$/s
    && join(' ', $said =~ /^  \[.\] (\S+)/gm) eq join(' ', map { $_->{number} } @of_04), 'N=04 lists those of lesson 04', $said);

($said) = exercise('run', N => $third->{number}, RESET => 1);
point(read_file(starter_path($third)) eq variant($third, 'starter') && read_file(glob "$dir/build/exercises/$third->{number}/before-reset.*") =~ /begun/,
    'starting over, and what was there is kept', $said);
exercise('run', N => $third->{number}, RESET => 1);
write_file(starter_path($third), "// again\n" . variant($third, 'starter'));
($said) = exercise('run', N => $third->{number}, RESET => 1);
my @kept = sort map { read_file($_) =~ /^(.*)/ } glob "$dir/build/exercises/$third->{number}/before-reset*";
my ($last) = $said =~ /kept in (\S+)$/m;
point("@kept" eq '// again // begun' && $last && read_file($last) =~ /again/, 'starting over again and again: nothing kept is lost, and the message names the last copy',
    "$said@kept");
($said) = exercise('solution', N => $first->{number});
point(index($said, variant($first, 'solution')) == 0 && has($said, "Why: $first->{why}"), 'a solution, and why', $said);

# After an editor on Windows: a file as it was handed out is not begun, and STRICT=1 tells make what came of it.
write_file(starter_path($third), "\xef\xbb\xbf" . variant($third, 'starter') =~ s/\n/ \r\n/gr =~ s/\s+\z//r);
($said) = exercise('list');
point($said =~ /^2 of.*\[ \] \Q$third->{number}\E/s, 'other ends of lines and blanks there change nothing', $said);
my @codes = map { my ($n, $strict) = @$_; system("env -u MPICC EXERCISE_ROOT='$dir' make -s -C '$top' BACKEND=cpu exercise N=$n $strict >/dev/null 2>&1") >> 8 }
    [$first->{number}, 'STRICT=1'], [$third->{number}, ''], [$third->{number}, 'STRICT=1'];
is("@codes", '0 0 2', 'an exercise that is not solved is an error with STRICT=1 only');
write_file(starter_path($third), '/* only this */');
($said) = exercise('run', N => $third->{number});
point($said =~ /It has no function \w+, and the task asks for it\./, 'a file without the function', $said);
write_file(starter_path($third), variant($third, 'starter'));

# Saved while it runs: what was tried is not what is there. mpirun is one that saves first.
write_file("$dir/mpirun", "#!/bin/sh\ncase \"\$*\" in *-np*) [ -e '$dir/build/saved' ] || cp '$dir/build/other' '" . starter_path($first)
    . "'; : >'$dir/build/saved' ;; esac\nexec mpirun \"\$@\"\n");
chmod 0755, "$dir/mpirun";
write_file("$dir/build/other", variant($first, 'starter'));
write_file(starter_path($first), '// once more' . variant($first, 'solution'));
($said, $code) = exercise('run', N => $first->{number}, MPIRUN => "$dir/mpirun");
unlink "$dir/mpirun";
point($code == 1 && $said =~ /saved meanwhile.*Not solved yet/s && $said !~ /Solved\./, 'a file that is saved while it runs is run again', $said);
write_file(starter_path($first), qq(%: /* */ line 1 "harness.c"\n) . variant($first, 'solution'));
($said) = exercise('run', N => $first->{number});
point($said =~ /leave #line out/, 'no #line', $said);
write_file(starter_path($first), '');
($said) = exercise('run', N => $first->{number});
point($said =~ /The file is empty, or not there\..*RESET=1\n/ && $said !~ /uninitialized/, 'an empty file', $said);
solve($first);

my ($fast) = grep { $_->{kind} eq 'fast' } @all;
($said) = exercise('run', N => $fast->{number});
point(has($said, "make timeline FILE=build/exercises/$fast->{number}/run.json draws"), 'not fast yet: how to see what happened when', $said);
solve($fast);
($said) = exercise('run', N => $fast->{number});
point($said =~ /^It takes [0-9.]+ µs, and .+ [0-9.]+ µs: [01]\.\d+ times, at most [0-9.]+ is asked\.\nSolved\./m, 'made fast: by how much', $said);

# With GPUs: what the CPU build has solved is not solved there; what can't be run there is left out.
my %gpu = (EXERCISE_BACKEND => 'cuda', CUDA_VISIBLE_DEVICES => 0);
($said) = exercise('list', %gpu);
point($said =~ /\[~\] \Q$first->{number}\E.*\[x\] \Q$second->{number}\E/s, 'on GPUs a program is to be solved again, a question is not', $said);
($said) = exercise('run', %gpu);
point($said =~ /^Not on the GPUs here, so take BACKEND=cpu for them: 00\.\d.*\n\Q01.3 \E/, 'what needs more GPUs is named in one line', $said);

# The first time, in a fresh clone.
$said = `env -u MPICC make -n -C '$top' BACKEND=cpu cpu_build='$dir/build/none' exercise 2>&1`;
point($said =~ /^Building the CPU build, once/m && $said !~ /^echo 'CC/m, 'one line says that the CPU build is built', $said);
$said = `make -C '$top' BACKEND=cpu cpu_build='$dir/build/none' MPICC=nompicc exercise 2>&1`;
point($said =~ /no nompicc here.*make demo/, 'MPI is missing', $said);

# Answers in other units and with other words.
my @same = (['1200 us', '1200', '1200 µs', '1.2 ms', 'about 1200us a step', '3 * 400 µs = 1200 µs', 'T = 1.2 ms (n = α)'], ['2', 'rank 2', 'step 2', '2 %', 'rank2.'],
    ['128 MiB', '128', '131072 KiB', '134217728', '134,217,728 bytes', '128 MiB are sent'], ['125', '125 ranks'], ['B', 'b', 'program B', 'B)'],
    ['2 6 1', 'ranks 2, 6, and 1', '2,6,1', 'rank 3: 2, rank 4 = 6, rank 9: 1'], ['114688 131072', '112 KiB, 128 KiB'], ['8000 us', '8 ms', '0.008 s', '8,000']);
my @other = (['1200 us', '1200 ms', '1.2', '1200 MB', '1200 1', '1200 = 1000'], ['2', '3', 'two', '-2'], ['128 MiB', '128 MB', '128 s', '0.128'], ['B', 'A', 'A or B', 'both'],
    ['2 6 1', '2 6', '6 2 1'], ['500 600', '500600']);
my @refused = map { my ($wanted, @given) = @$_; map { "$_ is not $wanted" } grep { !same_answer($_, $wanted, 0) } @given } @same;
my @taken = map { my ($wanted, @given) = @$_; map { "$_ is $wanted" } grep { same_answer($_, $wanted, 0) } @given } @other;
point(!@refused && !@taken, 'an answer may have its unit, another one or none, and words around it', join "\n", @refused, @taken);

my @forms = grep { answer_of(variant($third, 'starter') . "\nanswer:\n$_\n") ne 'B' || answer_of("Task\n$_") ne 'B' } '**Answer:** B', 'answer = B', 'Answer B',
    '> answer: B', '- answer: B', 'My answer: B', "answer\xef\xbc\x9aB", 'The answer is **B**', 'Answer - B', "# Answer\n\nB", "_answer_:\tB";
point(!@forms, 'forms of an answer', join "\n", @forms);
my ($asks) = grep { $_->{number} eq '25.1' } @all;
is(answer_of(variant($asks, 'starter') =~ s/^answer:\n//mr), '', 'what the task says of it is none');
write_file(starter_path($asks), "It is A D.\n" . variant($asks, 'starter'));
($said) = exercise('run', N => '25.1');
point($said =~ /There is no answer yet\. The line 'It is A D\.' is not read as one: write `answer: B`/, 'an answer elsewhere is quoted', $said);

my ($counted) = grep { $_->{number} eq '06.2' } @all;
write_file(starter_path($counted), variant($counted, 'starter') . "3,6 MB\n");
($said) = exercise('run', N => '06.2');
point($said =~ /No, not 3,6 MB\. This has 2 numbers, and one is asked for/, 'two numbers where one is asked for', $said);

# Watching: it waits, sees the file change, and goes on to the next. A question is the quickest.
my ($question) = grep { $_->{number} eq '01.3' } @all;
my $pid = fork // die "fork: $!\n";
if ($pid == 0) {
    open STDOUT, '>', "$dir/watched";
    open STDERR, '>&', \*STDOUT;
    @ENV{qw(N WATCH)} = ($question->{number}, 1);
    { exec "$top/exercises/exercise", 'run' }
    die "no exercise: $!\n";
}
sub until_it_says {
    my ($pattern) = @_;
    for (1 .. 600) {
        return 1 if read_file("$dir/watched") =~ $pattern;
        sleep 0.1;
    }
    return 0;
}
my $waits = until_it_says(qr/no answer yet.*Waiting/s);
write_file(starter_path($question), variant($question, 'A'));
my $wrong = until_it_says(qr/No, not A\. A passes.*Waiting/s);
write_file(starter_path($question), variant($question, 'starter') . "B\n");
my $solved = until_it_says(qr/Solved\./);
waitpid $pid, 0;
point($waits && $wrong && $solved, 'WATCH=1 looks again whenever the file is saved; the answer may be in a line of its own', read_file("$dir/watched"));

my @strange;
find({ no_chdir => 1, wanted => sub {
    push @strange, $_ if -f && !m{^\Q$dir\E/(?:build/|watched$|\d\d-[\w-]+/exercises/\d+-)};
} }, $dir);
point(!@strange, 'nothing is written but the exercises and build/', join "\n", @strange);
done_testing();
