#!/usr/bin/env perl
# make exercise, as a reader uses it: one after the other, hints, the list, watching, starting over.
# The reader's files are copies in a folder of the test's own. Prints TAP.
use strict;
use warnings;
use File::Find qw(find);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use FindBin qw($Bin);
use Time::HiRes qw(sleep);
my $dir;
BEGIN {
    $dir = tempdir('exercise-test-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    $ENV{EXERCISE_ROOT} = $dir;
}
use lib $Bin, "$Bin/../exercises";
use Programs qw(write_file);
use Exercises qw(load_all read_file starter_path variant $top);

my @all = load_all("$top/exercises");
make_path("$dir/$_") for map { m{([^/]+)/$} } glob "'$top'/[0-9][0-9]-*/";
delete @ENV{qw(N HINT WATCH RESET)};
my ($mpicc, $compile, $link) = split /\n/, `make -s --no-print-directory -C '$top' BACKEND=cpu exercise-flags`;
@ENV{qw(MPICC EXERCISE_COMPILE EXERCISE_LINK)} = ($mpicc, $compile, $link);

my ($number, $failed) = (0, 0);
sub point {
    my ($right, $name, $said) = @_;
    $number++;
    $failed++ if !$right;
    print $right ? '' : 'not ', "ok $number - $name\n";
    print map { "#   $_\n" } split /\n/, $said // '' if !$right;
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
    && $said =~ /takes \Q$first->{number}\E/, 'the list names all, and the next', $said);

($said, $code) = exercise('run');
point($code == 1 && $said =~ /^\Q$first->{number} $first->{title}\E.*Not solved yet.*HINT=1/s, 'the first is tried, and told what is missing', $said);

solve($first);
($said, $code) = exercise('run');
point($code == 0 && has($said, "Solved. $first->{learned}") && $said =~ /Solved.*Next: \Q$second->{number}\E/s && $said !~ /Not solved/,
    'solved: what was learned, and the next, which is not tried', $said);

($said, $code) = exercise('run', N => $first->{number});
point($code == 0 && $said =~ /: solved\.$/m && $said !~ /Solved\./, 'a solved one is not run again', $said);

solve($second);
$said = `make -s -C '$top'/01-*/ exercise N=1.1 HINT=1 2>&1`;
point(has($said, '01.1 The missing broadcast, hint 1 of 3'), "in a lesson's folder, too, and without the zero", $said);

write_file(starter_path($third), "// begun\n" . variant($third, 'starter'));
($said, $code) = exercise('run');
point($code == 1 && $said =~ /^\Q$second->{number}\E.*Solved\..*^\Q$third->{number}\E.*Not solved/ms, 'one that is begun is tried at once', $said);
($said) = exercise('list');
point($said =~ /^2 of.*\[x\] \Q$second->{number}\E.*\[~\] \Q$third->{number}\E/s, 'the list says what is solved and what is begun', $said);

my @hints = map { (exercise('run', N => $third->{number}, HINT => $_))[0] } 1 .. 4;
point((!grep { !has($hints[$_], $third->{hint}[$_]) } 0 .. 2) && $hints[3] =~ /HINT is 1 to 3/, 'three hints', join '', @hints);
($said, $code) = exercise('run', N => '77.1');
point($code != 0 && $said =~ /no exercise 77\.1: make exercises/, 'an unknown one', $said);

($said) = exercise('run', N => $third->{number}, RESET => 1);
point(read_file(starter_path($third)) eq variant($third, 'starter') && read_file(glob "$dir/build/exercises/$third->{number}/before-reset.*") =~ /begun/,
    'starting over, and what was there is kept', $said);
($said) = exercise('solution', N => $first->{number});
point(index($said, variant($first, 'solution')) == 0 && has($said, "Why: $first->{why}"), 'a solution, and why', $said);

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
my $wrong = until_it_says(qr/A: A passes.*Waiting/s);
write_file(starter_path($question), variant($question, 'starter') . "B\n");
my $solved = until_it_says(qr/Solved\./);
waitpid $pid, 0;
point($waits && $wrong && $solved, 'WATCH=1 looks again whenever the file is saved; the answer may be in a line of its own', read_file("$dir/watched"));

my @strange;
find({ no_chdir => 1, wanted => sub {
    push @strange, $_ if -f && !m{^\Q$dir\E/(?:build/|watched$|\d\d-[\w-]+/exercises/\d+-)};
} }, $dir);
point(!@strange, 'nothing is written but the exercises and build/', join "\n", @strange);
print "1..$number\n";
exit($failed ? 1 : 0);
