#!/usr/bin/env perl
# Each lesson's page begins with its question and time as the README's table has them, with what one can do
# afterwards (two or three sentences), and with what one needs first. Prints TAP.
use strict;
use warnings;
use utf8;
use open qw(:std :encoding(UTF-8));
use FindBin qw($Bin);

my $top = "$Bin/../..";
my $number = 0;

# What a page's head lacks.
sub lacks {
    my ($text, $question, $minutes) = @_;
    my ($asked, $can, $need, $time) = $text =~ /\A\# .+\n\n\*\*(.+)\*\*\n\n
        -\ \*\*Afterwards\ you\ can:\*\*\ ((?:.+\n)+?)-\ \*\*You\ need:\*\*\ ((?:.+\n)+?)
        -\ \*\*Time:\*\*\ (\d+)\ minutes\.\n\n/x or return 'its form: see lesson 01';
    my @lacks;
    push @lacks, "the question of the README: $question" if $asked ne $question;
    push @lacks, "the time of the README: $minutes" if $time ne $minutes;
    my @sentences = split /(?<=[.!?])\s+/, $can;
    push @lacks, 'two or three sentences of what one can do' if @sentences < 2 || @sentences > 3;
    push @lacks, "a verb at the beginning: $_" for grep { !/^[A-Z][a-z]+\s/ || /^(?:You|The|This|After|How) / } @sentences;
    return @lacks;
}

sub ok {
    my ($name, @problems) = @_;
    $number++;
    print @problems ? 'not ' : '', "ok $number - $name\n", map { "#   $_\n" } @problems;
    $main::failed ||= @problems;
}

for (`'$top/common/lessons.sh'`) {
    chomp;
    my ($folder, undef, undef, $time, $question) = split /\t/;
    open my $in, '<', "$top/$folder/README.md" or die "$folder: $!\n";
    local $/;
    ok($folder, lacks(scalar <$in>, $question, $time =~ /(\d+)/));
}
ok('all lessons were read', $number < 20 ? 'few lessons' : ());

my $head = "# A\n\n**Q?**\n\n- **Afterwards you can:** Do it. Say it.\n- **You need:** x.\n- **Time:** 5 minutes.\n\n";
ok('a right head passes', lacks($head, 'Q?', 5));
for ([qr/Q/, 'R', 'question'], [qr/5/, '6', 'time'], [qr/ Say it\./, '', 'sentences'], [qr/Say/, 'You say', 'verb'], [qr/- \*\*You.*\n/, '', 'form']) {
    my ($from, $to, $word) = @$_;
    my $said = join ' ', lacks($head =~ s/$from/$to/r, 'Q?', 5);
    ok("a head with a wrong $word is found", $said =~ /$word/ ? () : "instead: $said");
}
print "1..$number\n";
exit($main::failed ? 1 : 0);
