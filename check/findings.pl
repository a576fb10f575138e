#!/usr/bin/env perl
# Prints findings.md: what judge/say/findings.list says, for people, with the programs of
# tests/check/wrong that show each finding.
#
#     check/findings.pl >check/findings.md
use strict;
use warnings;
use File::Basename qw(basename);
use FindBin qw($Bin);

my @classes = (
    [mismatch => 'The ranks make different calls at the same place, or give one call buffers that do not go together.'],
    [missing  => 'A rank waits for others that never come.'],
    [deadlock => 'Ranks wait for one another, and none of them can go on.'],
    [race     => 'Two uses of the same memory, one of them a write, and nothing puts them in order.'],
    [memory   => 'The memory is not there, not so much, not on this device, or nothing was ever written to it.'],
    [setup    => 'How ranks become communicators, and how communicators, streams and groups are used.'],
    ['left behind' => 'The program has ended, and some of what it made was never released, or nobody has waited for a signal. The exit code stays as it is.'],
    [note => 'One line: a call has returned an error, and why; or, of a program that has ended, which of its calls returned errors that it never asked for, what it had'
            . ' read before it gave up, or who had waited for the rank that ended the job. The exit code stays as it is.'],
);

sub read_file {
    my ($path) = @_;
    local $/;
    open my $in, '<:encoding(UTF-8)', $path or die "$path: $!\n";
    return scalar <$in>;
}

my $string = qr/"(?:[^"\\]|\\.)*"/;

# The text of a row of C strings.
sub text_of {
    my $text = join '', map { substr $_, 1, -1 } $_[0] =~ /($string)/g;
    $text =~ s/\\n/\n/g;
    $text =~ s/\\(.)/$1/g;
    return $text;
}

# For people: one line, with what differs from case to case in italics.
sub shown {
    my ($text) = @_;
    $text =~ s/\n/ /g;
    $text =~ s/\|/\\|/g;
    $text =~ s/\{(\w+)\}/'*' . ($1 =~ s{_}{ }gr) . '*'/ge;
    return $text;
}

# What the programs say that they expect: class and headline.
my %expected;
for my $path (sort glob "'$Bin/../tests/check/wrong/*.c'") {
    my ($comment) = read_file($path) =~ m{\A(.*?)^#include}ms;
    $comment =~ s{\n//\s{3,}}{ }g;
    push @{$expected{$1}}, [$2, basename($path, '.c')] while $comment =~ /^\/\/ expect[\d+ ]*: NCCL CHECK: ([\w ]+?): (.*)$/mg;
}

# The row whose headline says most of what a program expects to be told.
sub row_of {
    my ($text, @rows) = @_;
    $text =~ s/\.\.\.|@\w+/x/g;
    my ($best, $most) = (undef, -1);
    for my $row (@rows) {
        my $pattern = join '.+', map { quotemeta } split /\{\w+\}/, $row->{headline}, -1;
        my $literal = $row->{headline} =~ s/\{\w+\}//gr;
        ($best, $most) = ($row, length $literal) if $text =~ /^$pattern$/ && length $literal > $most;
    }
    return $best;
}

my $list = read_file("$Bin/judge/say/findings.list");
$list =~ s{^//.*\n}{}mg;
my %rows;
while ($list =~ /FINDING\((\w+), ([\w ]+), (\w+),\s*($string(?:\s*$string)*),\s*($string(?:\s*$string)*),\s*($string(?:\s*$string)*)\)/g) {
    push @{$rows{$2}}, {name => $1, ends => $3, headline => text_of($4), hint => text_of($6)};
}

for my $class (keys %expected) {
    for (@{$expected{$class}}) {
        my ($text, $program) = @$_;
        my $row = row_of($text, @{$rows{$class} // []}) // next;
        push @{$row->{programs}}, $program unless grep { $_ eq $program } @{$row->{programs} // []};
    }
}

binmode STDOUT, ':encoding(UTF-8)';
print <<'END';
# What the checks find

Each row is one report: its first line, its hint, and small programs in [tests/check/wrong](../tests/check/wrong)
that make the mistake, each with its repair beside it (`-DFIXED`). What is in *italics* differs from case to
case. How to read a report is in [README.md](README.md).

This page is made from [findings.list](judge/say/findings.list) by `check/findings.pl`.
END
for (@classes) {
    my ($class, $meaning) = @$_;
    print "\n## ", ucfirst $class, "\n\n$meaning\n\n| report | hint | programs |\n| --- | --- | --- |\n";
    for my $row (@{$rows{$class}}) {
        my $programs = join ', ', map { "[$_](../tests/check/wrong/$_.c)" } @{$row->{programs} // []};
        print '| ', shown($row->{headline}), ' | ', shown($row->{hint}), " | $programs |\n";
    }
}
