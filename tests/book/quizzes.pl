#!/usr/bin/env perl
# What make exercise says of answers to the questions: {"01.3": [["D", "No, not D. D passes: …"], …]}, as JSON.
# Each question gets its right answer, all wrong ones that are foreseen, and one that is not.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/../../exercises/lib";
use Answer qw(judge_answer);
use Source qw(load_all write_file);
use File::Temp qw(tempdir);
use JSON::PP;

my $dir = tempdir(CLEANUP => 1);
my %said;
for my $ex (grep { $_->{kind} eq 'predict' } load_all("$Bin/../../exercises")) {
    my $letters = $ex->{answer} =~ /^[A-Z]$/;
    for my $answer ($ex->{answer}, (map { $_->{name} } @{ $ex->{wrong} }), $letters ? () : ('1 2 3 4 5 6 7', '99 apples')) {
        write_file("$dir/answer.txt", "answer: $answer\n");
        my $result = judge_answer($ex, "$dir/answer.txt", dir => $dir, quick => 1);
        my $words = $result->{solved} ? "Solved. $ex->{learned} $ex->{why}" : $result->{text};
        utf8::decode($words);
        utf8::decode(my $given = $answer);
        push @{ $said{ $ex->{number} } }, [$given, $words];
    }
}
print JSON::PP->new->canonical->utf8->encode(\%said);
