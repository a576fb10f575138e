#!/usr/bin/env perl
# Writes the lists of misconceptions into the instructor's notes, from the wrong answers that the exercises know.
#
#     book/notes/lists.pl            writes them
#     book/notes/lists.pl --check    says which page's list is not what the exercises say, exit code 1
use strict;
use warnings;
use open qw(:std :encoding(UTF-8));
use FindBin;
use lib "$FindBin::Bin/../../exercises/lib";
use Encode qw(decode_utf8);
use Source qw(load_all lessons read_file);

my $mark = "<!-- The rest is written by book/notes/lists.pl -->\n";

# list EXERCISES: a paragraph for each, with what readers do wrong and what they are told then.
sub list {
    my $text = "\n## Usual misconceptions\n\nEach is a wrong answer to an exercise: its short name, and what its author is told.\n";
    for my $exercise (@_) {
        $text .= "\n**$exercise->{number} $exercise->{title}**\n\n";
        for my $wrong (@{ $exercise->{wrong} }) {
            my $predicted = $exercise->{kind} eq 'predict';
            my $says = $predicted ? $wrong->{says} : "`$wrong->{says}`";
            $text .= "- " . ($predicted ? "“$wrong->{name}”" : $wrong->{name} =~ tr/-/ /r) . ": $says\n";
        }
    }
    return $text;
}

my $check = "@ARGV" eq '--check';
my $bad = 0;
for my $lesson (lessons(load_all("$FindBin::Bin/../../exercises"))) {
    my ($number) = $lesson->[0]{number} =~ /^(\d\d)/;
    my $page = "$FindBin::Bin/$number.md";
    my $text = decode_utf8(read_file($page));
    my ($hand) = $text =~ /\A(.*?\Q$mark\E)/s;
    if (!defined $hand) {
        print "book/notes/$number.md: no page, or it lacks the line $mark";
        $bad = 1;
        next;
    }
    my $new = $hand . decode_utf8(list(@$lesson));
    next if $new eq $text;
    if ($check) {
        print "book/notes/$number.md: the list is old, type book/notes/lists.pl\n";
        $bad = 1;
        next;
    }
    open my $out, '>', $page or die "$page: $!\n";
    print $out $new;
    close $out or die "$page: $!\n";
}
exit $bad;
