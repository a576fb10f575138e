#!/usr/bin/env perl
# The exercises: what is committed for the reader is what the source gives, the starter fails with
# the message that it should, right answers pass, and each wrong one fails for its own reason.
# Prints TAP.
#
#     tests/exercises/exercises.t [-v] [--all] [N...]   only these (01.2, or 01 for a lesson); -v shows what
#                                             a reader sees; --all runs only the right answers, on
#                                             all the numbers of ranks that their tasks allow
#
# Without arguments, every solution is tried and every second program's starter, and of every fourth exercise one other
# right answer and one wrong one. ALL=yes tries them all.
# With BACKEND=cuda, too, only the solutions run, on as many GPUs as there are.
use strict;
use warnings;
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use FindBin qw($Bin);
use lib "$Bin/..", "$Bin/../../exercises/lib";
BEGIN {
    $ENV{EXERCISE_BACKEND} = $ENV{BACKEND} || 'cpu';
    $ENV{EXERCISE_STRICT}  = 1;
}
use Programs qw(done_testing in_parallel ok);
use Source qw(lessons load_all read_file readme_line starter_path variant write_file $top);
use Run qw($backend);
use Build qw(build_checker compile_flags);
use Judge qw(judge);

my $verbose = @ARGV && $ARGV[0] eq '-v' && shift @ARGV;
my $all     = @ARGV && $ARGV[0] eq '--all' && shift @ARGV;
my @asked   = @ARGV;
my $some    = !delete $ENV{ALL} && !@asked && !$all;

my @every = load_all("$top/exercises");
my @exercises = grep {
    my $ex = $_;
    !@asked || grep { $ex->{number} eq $_ || $ex->{lesson} eq $_ } @asked
} @every;
# On GPUs a solution runs under the checks.
system('make', '-s', '-C', $top, 'check-library') == 0 or die "make check-library fails\n" if $backend eq 'cuda';
compile_flags();
my %place = map { $every[$_]{number} => $_ } 0 .. $#every;
my $dir = tempdir('exercises-XXXXXX', TMPDIR => 1, CLEANUP => 1);
build_checker($exercises[0], $dir) if @exercises; # the frame, once for all

# Whether a text has all pieces of an expectation, in order; … stands between them. No piece is cut inside a word,
# because instructors read them in book/notes/.
sub says {
    my ($text, $expected) = @_;
    my $pattern = join '.*', map { (/^\w/ ? '\b' : '') . quotemeta . (/\w$/ ? '\b' : '') } split /\s*…\s*/, $expected;
    return $text =~ /$pattern/s;
}

# One variant of an exercise: what is wrong with how it was judged, or ''.
sub tried {
    my ($ex, $name, $expected, $out) = @_;
    my $here = "$dir/$ex->{number}";
    my $file = "$here/" . ($ex->{number} =~ /\.(.*)/)[0] . "-$ex->{name}.$ex->{ending}";
    write_file($file, variant($ex, $name));
    # What is right runs on the fewest ranks of its task; the solution as if it were graded. --all runs all.
    my $right = grep { $name eq $_ } 'solution', @{ $ex->{right} };
    my @counts = @{ $ex->{counts} };
    @counts = (sort { $a <=> $b } @counts)[0] if $right && @counts;
    my $result = judge($ex, $file, dir => "$here/build", all => $all, graded => $name eq 'solution', $all ? () : (counts => \@counts));
    print $out map { "#     $_\n" } "-- $name", split /\n/, $result->{text} if $verbose;
    if ($right) {
        return "not solved:\n$result->{text}" if !$result->{solved} && $result->{kind} ne 'not on GPUs';
        return "the compiler warns:\n$result->{warnings}" if $result->{warnings};
        return '' if $ex->{ending} ne 'txt' || $backend eq 'cuda' || !$ex->{check} && !$ex->{proof};
        my $seen = $ex->{seen} // "answer: $ex->{answer}";
        return says($result->{text}, $seen) ? '' : "its run does not say $seen:\n$result->{text}";
    }
    return 'solved' if $result->{solved};
    return says($result->{text}, $expected) ? '' : "it does not say $expected:\n$result->{text}";
}

# All of a list, or one.
sub some {
    my ($ex, @list) = @_;
    return !$some || !@list ? @list : $list[int($place{ $ex->{number} } / 4) % @list];
}

sub check_exercise {
    my ($ex, $file) = @_;
    open my $out, '>', $file or die "$file: $!\n";
    make_path("$dir/$ex->{number}");
    my $point = sub {
        my ($name, $problem) = @_;
        print $out $problem eq '' ? 'ok' : 'not ok', " $ex->{number} $name\n";
        print $out map { "#   $_\n" } split /\n/, $problem;
    };
    my $committed = starter_path($ex);
    $point->('the file is what the source gives', read_file($committed) eq variant($ex, 'starter') ? '' :
        "$committed is another: make starters N=$ex->{number}, or it is being solved");
    if ($all || $backend eq 'cuda') {
        $point->('the solution', tried($ex, 'solution', '', $out));
        $point->("right: $_", tried($ex, $_, '', $out)) for @{ $ex->{right} };
        return;
    }
    $point->('the starter', tried($ex, 'starter', $ex->{starter} // 'There is no answer yet', $out))
        if !$some || $ex->{ending} eq 'txt' || $place{ $ex->{number} } % 2 == 0;
    $point->('the solution', tried($ex, 'solution', '', $out));
    return if $some && $place{ $ex->{number} } % 4;
    $point->("right: $_", tried($ex, $_, '', $out)) for some($ex, @{ $ex->{right} });
    $point->("wrong: $_->{name}", tried($ex, $_->{name}, $_->{says}, $out)) for some($ex, @{ $ex->{wrong} });
    close $out;
}

in_parallel($ENV{JOBS} // 3, $dir, \&check_exercise, @exercises);

# A lesson's README lists its exercises.
for my $lesson (lessons(@exercises)) {
    next if grep { /\./ } @asked;
    my ($folder) = starter_path($lesson->[0]) =~ m{([^/]+)/exercises/};
    my $found = join '', read_file("$top/$folder/README.md") =~ /^- \[\d\d\.\d+ .*\n/gm;
    ok($found eq join('', map { readme_line($_) } @$lesson), "$folder/README.md lists its exercises (make starters)", $found);
}

# No two files of the same name: a file that is handed in is known by it.
my %names;
$names{ ($_->{number} =~ /\.(.*)/)[0] . "-$_->{name}" }++ for @every;
my @twice = grep { $names{$_} > 1 } sort keys %names;
ok(!@twice, 'no two exercises have the same file name', @twice);
done_testing();
