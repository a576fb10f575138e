#!/usr/bin/env perl
# make variants: the same exercises with other numbers. Last year's solution fails, this year's passes, and what a run
# shows is the answer. Prints TAP.
#
# Programs run for one seed, and two of last year's; ALL=yes takes all of them, five seeds, and the runs that show an answer.
use strict;
use warnings;
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use FindBin qw($Bin);
use Test::More;
BEGIN { $ENV{EXERCISE_STRICT} = 1 }
use lib "$Bin/..", "$Bin/../../exercises/lib";
use Programs qw(write_file);
use Source qw(load_all read_file variant $top);
use Build qw(compile_flags);
use Answer qw(same_answer);
use Judge qw(judge);
use Vary qw(can_vary vary);

my $dir = tempdir('variants-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $everything = delete $ENV{ALL};
my @seeds = $everything ? (2027 .. 2031) : (2027, 2028);
my %original = map { $_->{number} => $_ } load_all("$top/exercises");
compile_flags();

# Whether a text, in a file of its own, solves an exercise; and what is said.
sub solves {
    my ($ex, $text, $name, %more) = @_;
    my $here = "$dir/$name";
    make_path($here);
    my $file = "$here/1-$ex->{name}.$ex->{ending}";
    write_file($file, $text);
    my ($fewest) = sort { $a <=> $b } @{ $ex->{counts} };
    my $result = judge($ex, $file, dir => $here, quick => 1, $ex->{ending} eq 'c' ? (graded => 1, counts => [$fewest]) : (), %more);
    return ($result->{solved}, $result->{text});
}

for my $seed (@seeds) {
    my $said = `make -s --no-print-directory -C '$top' variants SEED=$seed OUT='$dir/$seed'`;
    my @varied = load_all("$dir/$seed/checks");
    cmp_ok(scalar @varied, '>=', 30, "$seed: at least thirty") or diag($said);
    my (@unsolved, @old, @shown);
    my $programs = 0;
    for my $ex (@varied) {
        my ($number, $was) = ($ex->{number}, $original{ $ex->{number} });
        my ($handed) = glob "'$dir/$seed'/$ex->{lesson}-*/exercises/" . ($number =~ /\.(.*)/)[0] . '-*';
        push @shown, $number if read_file($handed // '') ne variant($ex, 'starter') || read_file($ex->{source}) =~ /\[\[\w/
            || read_file($ex->{source}) eq read_file($was->{source});
        next if $ex->{ending} eq 'c' && !$everything && $seed != $seeds[0];
        my ($right, $why) = solves($ex, variant($ex, 'solution'), "$seed-$number-new");
        push @unsolved, "$number: $why" if !$right;
        next if $ex->{ending} eq 'c' && !$everything && $programs++ >= 2;
        ($right, $why) = solves($ex, variant($was, 'solution'), "$seed-$number-old");
        push @old, $number if $right;
        next if !$everything || $ex->{ending} eq 'c' || $ex->{check} eq '' && !$ex->{proof};
        ($right, $why) = solves($ex, variant($ex, 'solution'), "$seed-$number-run", quick => 0);
        my $seen = join '.*', map { quotemeta } split /\s*…\s*/, $ex->{seen} // "answer: $ex->{answer}";
        push @unsolved, "$number: its run does not say $seen:\n$why" if $why !~ /$seen/s;
    }
    is(join("\n", @unsolved), '', "$seed: this year's solutions solve them");
    is("@old", '', "$seed: last year's do not");
    is("@shown", '', "$seed: the students' files are there, with other numbers");
}

# No year's answer to a question is accepted for the first one.
my @same;
for my $ex (grep { $_->{ending} eq 'txt' } values %original) {
    my $text = read_file($ex->{source});
    next if !can_vary($text);
    my ($within) = ($ex->{within} // '0') =~ /([\d.]+)/;
    for my $seed (1 .. 30) {
        my ($answer) = vary($text, $seed) =~ m{^//: answer (.*)}m;
        push @same, "$ex->{number}: $answer" if same_answer($ex->{answer}, $answer, $within / 100);
    }
}
is("@same", '', 'with thirty seeds, no answer is that of the course');

my $again = `make -s --no-print-directory -C '$top' variants SEED=2027 OUT='$dir/again' && diff -r '$dir/2027' '$dir/again'`;
unlike($again, qr/^[<>]/m, 'the same seed gives the same numbers');
isnt(`diff -r '$dir/2027' '$dir/2028'`, '', 'another one gives others');
my $none = `make -s --no-print-directory -C '$top' variants 2>&1`;
like($none, qr/make variants SEED=2027 OUT=folder/, 'without a seed it asks for one');
done_testing();
