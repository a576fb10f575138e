#!/usr/bin/env perl
# Each measured figure in a lesson's text, and in README.md, stands in results/: a number with the unit µs, ms,
# s or GB/s is, rounded as the text has it, in a section on that lesson or on lesson 06, in results/README.md, or
# in a block of the page itself (readme.t runs those). Paragraphs are left out that say "modelled", speak of the
# CPU build, or link to where a figure comes from.
#
#     tests/figures.t [-v] [PAGE...]     -v shows where each figure was found
use strict;
use utf8;
use warnings;
use FindBin qw($Bin);
chdir "$Bin/.." or die;

my $verbose = @ARGV && $ARGV[0] eq '-v' && shift @ARGV;

# The numbers of a text: digits, perhaps with a decimal point.
sub read_file { open my $in, '<:encoding(UTF-8)', $_[0] or die "$_[0]: $!\n"; local $/; return scalar <$in> }
binmode STDOUT, ':encoding(UTF-8)';

# The numbers of results/, by lesson: a section's heading names it ("Lesson 11", "Lessons 05 and 09", "16: …").
# Those of results/README.md are everybody's, and README.md may quote all.
my (%number, %all);
for my $file (glob 'results/*.md') {
    my @lessons;
    for my $line (split /\n/, read_file($file)) {
        @lessons = ($line =~ /^## (?:Lessons? )?(\d\d)(?: and (\d\d))?\b/) if $line =~ /^##? /;
        while ($line =~ /(?<![\w.])(\d+(?:\.\d+)?)(?!\w)/g) {
            $number{$_ // next}{$1} //= $file for @lessons, $file eq 'results/README.md' ? 'all' : ();
            $all{$1} //= $file;
        }
    }
}

# Whether a number there is this one, rounded to as many digits; or a thousand times as much or as little (µs
# and ms, MB and GB).
sub found {
    my ($lesson, $text, $shown) = @_;
    my $decimals = $text =~ /\.(\d+)/ ? length $1 : 0;
    for my $numbers ($shown, $lesson ? @number{$lesson, '06', 'all'} : \%all) {
        for my $n (keys %$numbers) {
            for my $as ($n, $n / 1000, $n * 1000) {
                return $numbers->{$n} if sprintf("%.${decimals}f", $as) eq $text;
            }
        }
    }
    return;
}

my @pages = @ARGV ? @ARGV : ('README.md', glob '[0-2][0-9]-*/README.md');
my $failed = 0;
my $tests = 0;
for my $page (@pages) {
    my $text = read_file($page);
    my %shown; # in the page's own blocks
    for my $block ($text =~ /^```.*?^```$/gms) {
        $shown{$1} //= 'shown above' while $block =~ /(?<![\w.])(\d+(?:\.\d+)?)(?!\w)/g;
    }
    $text =~ s/^```.*?^```$//gms;
    my ($lesson) = $page =~ /^(\d\d)-/ ? $1 : '';
    my @missing;
    for my $paragraph (split /\n\s*\n/, $text) {
        next if $paragraph =~ m{modelled|CPU build|\]\(https:}i;
        my $line = $paragraph =~ s/`[^`]*`//gr;
        while ($line =~ m{(\d+(?:\.\d+)?)(?:\s+(?:to|and)\s+(\d+(?:\.\d+)?))?\s+(µs|ms|GB/s|(?<=\.\d )s|(?<=\.\d\d )s)\b}g) {
            for my $figure (grep { defined } $1, $2) {
                my $at = found($lesson, $figure, \%shown);
                print "# $page: $figure $3: ", $at // 'NOWHERE', "\n" if $verbose;
                push @missing, "$figure $3" if !$at;
            }
        }
    }
    $tests++;
    print @missing ? 'not ok' : 'ok', " $tests - $page", @missing ? ": not in results/: @{[join ', ', @missing]}" : '', "\n";
    $failed ||= @missing;
}
print "1..$tests\n";
exit($failed ? 1 : 0);
